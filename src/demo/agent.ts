import { once } from 'node:events';
import { connect as dial } from 'node:net';
import { HoldfastError, isHoldfastError, type JsonObject } from '../core/index.js';
import { redactText } from '../envelope/index.js';
import { buildReference, signEvidenceUrl } from '../evidence/index.js';
import { type Holdfast, loadEvidenceSecret, openHoldfast } from '../node/index.js';
import { A2A_VERSION, EXTENSION_URI, JSON_RPC_PATH } from '../protocol/index.js';
import type { ConnectTarget, NetworkPorts } from '../transport/index.js';
import { billingHandler, refundEffect } from './billing.js';
import type {
  AgentSetup,
  CommandInput,
  CommandName,
  CommandOutput,
  Failure,
  Reply,
  Request,
} from './commands.js';
import { CASE_ID, CONTRACT, chargeLines, IMPORTED_EPOCH, KIND, PAYMENTS } from './fixture.js';
import { caseFileOf, readSystems } from './triage.js';

/** The process of one agent: a node, and the commands with which the orchestrator drives it. */

type Handlers = { [N in CommandName]: (input: CommandInput<N>) => Promise<CommandOutput<N>> };

const MAX_ANSWER_BYTES = 1024 * 1024;

let node: { readonly holdfast: Holdfast; readonly setup: AgentSetup } | null = null;
const refusedDials: string[] = [];

function running(): { holdfast: Holdfast; setup: AgentSetup } {
  if (!node) throw new HoldfastError('usage', 'The agent is not started.');
  return node;
}

const handlers: Handlers = {
  async start(setup) {
    const { dir, dialOnly, role } = setup;
    const holdfast = await openHoldfast({
      dir,
      ...(dialOnly ? { ports: confinedNetwork(new Set(dialOnly)) } : {}),
    });
    if (role === 'billing' || role === 'billing2') holdfast.onHandoff(CONTRACT, billingHandler(setup));
    node = { holdfast, setup };
    const { port } = await holdfast.start({ port: 0 });
    return { port };
  },

  openCase: ({ caseId, owner }) =>
    running().holdfast.openCase({
      caseId,
      kind: KIND,
      epoch: IMPORTED_EPOCH,
      importedFrom: 'the case system',
      ...(owner === undefined ? {} : { owner }),
    }),

  async prepare() {
    const { holdfast, setup } = running();
    const findings = await readSystems(setup.systemsUrl);
    const transcript = redactText(chargeLines(findings.record));
    const artifact = await holdfast.addEvidence(Buffer.from(transcript.text), {
      filename: 'transcript.txt',
      mediaType: 'text/plain',
    });
    return { caseFile: caseFileOf(findings, new Date()), artifactId: artifact.artifactId };
  },

  async reference({ artifactId, to, expiresAt }) {
    const { holdfast, setup } = running();
    const artifact = await holdfast.evidence.find(artifactId);
    if (!artifact) throw new HoldfastError('evidence_file_missing');
    const url = signEvidenceUrl(loadEvidenceSecret(setup.dir), {
      baseUrl: holdfast.url,
      artifactId,
      version: artifact.version,
      sha256: artifact.sha256,
      audience: to,
      expiresAt: new Date(expiresAt),
    });
    return buildReference(artifact, url, new Date(expiresAt));
  },

  handOff: (input) => running().holdfast.handOff(input),

  async retryNote({ ref, epoch }) {
    const { holdfast, setup } = running();
    const note = await holdfast.note({ ref, epoch, text: 'retry job: customer was told to wait' });
    await fetch(`${setup.systemsUrl}/cases/${CASE_ID}/notes`, { method: 'POST', body: '{}' });
    return note;
  },

  async hastyRefund({ ref, epoch }) {
    const { holdfast, setup } = running();
    const { record } = await readSystems(setup.systemsUrl);
    const payment = PAYMENTS.at(-1)?.id ?? '';
    const wanted = { key: `refund-${payment}`, payment, amount: record.claim };
    const refund = refundEffect(setup.systemsUrl, wanted);
    return (await holdfast.effect({ ref, epoch, ...refund })).row;
  },

  escalate: (input) => running().holdfast.escalate(input),

  statusPointer: ({ ref }) => running().holdfast.statusPointer(ref),

  async send({ to, message, audience }) {
    const token = await running().holdfast.identity.tokenFor(audience ?? to);
    const response = await fetch(`${to}${JSON_RPC_PATH}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'a2a-version': A2A_VERSION,
        'a2a-extensions': EXTENSION_URI,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }),
    });
    const text = await response.text();
    if (text.length > MAX_ANSWER_BYTES) throw new HoldfastError('peer_error', 'The answer is too large.');
    return { status: response.status, body: JSON.parse(text) as JsonObject };
  },

  refusedDials: async () => [...refusedDials],
};

/** Names are never looked up, and only the given addresses are really dialled; what else is tried stays in this process. */
function confinedNetwork(permitted: ReadonlySet<string>): NetworkPorts {
  return {
    resolve: async () => [{ address: '169.254.169.254', family: 4 }],
    connect: async ({ address, port }: ConnectTarget) => {
      if (!permitted.has(`${address}:${port}`)) {
        refusedDials.push(`${address}:${port}`);
        throw new Error('confined');
      }
      const socket = dial({ host: address, port, noDelay: true });
      await once(socket, 'connect');
      return socket;
    },
  };
}

async function answer({ id, name, input }: Request): Promise<Reply> {
  try {
    const handler = handlers[name] as (input: unknown) => Promise<unknown>;
    return { id, ok: true, output: await handler(input) };
  } catch (error) {
    return { id, ok: false, error: failureOf(error) };
  }
}

function failureOf(error: unknown): Failure {
  if (isHoldfastError(error)) {
    return { code: error.code, message: error.message, fields: error.fields, data: error.data };
  }
  return { code: null, message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
}

process.on('message', (request: Request) => {
  void answer(request).then((reply) => {
    if (process.connected) process.send?.(reply);
  });
});
// The orchestrator went away or asks us to stop.
process.once('disconnect', () => {
  void (node?.holdfast.close() ?? Promise.resolve()).finally(() => process.exit());
});
