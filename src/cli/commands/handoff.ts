import type { Command } from 'commander';
import { HoldfastError, normalizeAgentUrl } from '../../core/index.js';
import type { HandOffResult } from '../../handoff/index.js';
import type { OfferRow } from '../../ledger/index.js';
import { type Holdfast, parseDuration } from '../../node/index.js';
import { findCase, ROOT_OPTION } from '../cases.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import { findEvidenceFile, readCaseFile, storeEvidenceFile } from '../files.js';
import { printFields, printTable } from '../print.js';
import { type CommonOptions, leaf, type Result, type Session } from '../run.js';

interface SendOptions extends CommonOptions {
  file: string;
  case?: string;
  to: string;
  contract: string;
  evidence?: string[];
  artifact?: string[];
  mediaType?: string;
  redact?: boolean;
  acceptWithin?: string;
  root?: string;
}

interface OneOffer extends CommonOptions {
  attempt?: string;
  root?: string;
}

export function addHandoff(program: Command, session: Session): void {
  const group = program.command('handoff').description('handing a case over to another agent');
  addSend(group, session);

  offerLeaf(
    group,
    'show',
    'show an offer: where it stands and what was kept back',
    session,
    async (_, offer) => {
      return { json: { offer: shown(offer) }, text: showOffer(offer) };
    },
  );
  offerLeaf(
    group,
    'resend',
    'deliver the identical bytes of an open offer again',
    session,
    async (holdfast, offer) => reportOf(await holdfast.resend(offer.key)),
  );
  offerLeaf(
    group,
    'void',
    'close an open offer, so that a late arrival is refused',
    session,
    async (holdfast, offer, options) => {
      const result = await holdfast.voidOffer(offer.key, options.reason ?? 'voided by its sender');
      const report = reportOf(result);
      return { ...report, exit: result.state === 'withdrawn' ? EXIT.ok : EXIT.refused };
    },
  ).option('--reason <text>', 'why, for the audit');

  leaf(group, 'list', "list this agent's offers, sent and received", [
    'handoff list --dir triage',
    'handoff list --open',
  ])
    .option('--open', 'only offers that are not decided')
    .option('--case <id>', 'only those of one case')
    .action((options: CommonOptions & { open?: boolean; case?: string }) =>
      session.withAgent(options, async ({ ledger, config, url }) => {
        const filter = {
          ...(options.open ? { open: true } : {}),
          ...(options.case === undefined ? {} : { caseId: options.case }),
        };
        const sent = await ledger.listOffers(config.tenant, { ...filter, from: url });
        const received = await ledger.listOffers(config.tenant, { ...filter, to: url });
        const offers = [...sent, ...received].sort((a, b) => (a.intendedAt < b.intendedAt ? 1 : -1));
        return {
          json: { offers: offers.map(shown) },
          text: printTable(
            ['HANDOFF', 'ATTEMPT', 'FROM', 'TO', 'CONTRACT', 'STATE', 'CODE'],
            offers.map(({ key, toAgent, contract, state, code }) => [
              key.handoffId,
              String(key.attempt),
              key.sender,
              toAgent,
              contract,
              state,
              code ?? '',
            ]),
          ),
        };
      }),
    );
}

function addSend(group: Command, session: Session): void {
  leaf(group, 'send', 'offer a case to another agent and wait for its decision', [
    'handoff send --file case.json --to http://127.0.0.1:4200 --contract refund-dispute/1 --evidence transcript.txt --redact --dir triage',
  ])
    .requiredOption('--file <case.json>', 'the case file; the contract decides what of it leaves')
    .requiredOption('--to <url>', 'the agent that is to own the case')
    .requiredOption('--contract <id>', 'the contract, name/version')
    .option('--case <id>', 'the case; must be the one in the file')
    .option('--evidence <file...>', 'files that the receiver is to fetch')
    .option('--artifact <id...>', 'stored evidence that the receiver is to fetch; id or id@version')
    .option('--media-type <type>', 'media type of the evidence files (default: by the ending of each name)')
    .option('--redact', 'replace phone numbers, mail addresses and the like in text files')
    .option(
      '--accept-within <duration>',
      'how long the receiver may take, such as 30m (default: as the kind says)',
    )
    .option(...ROOT_OPTION)
    .action((options: SendOptions) =>
      session.withAgent(options, async (holdfast) => {
        const caseFile = await readCaseFile(options.file);
        const files = await Promise.all(
          (options.evidence ?? []).map((file) => findEvidenceFile(file, options.mediaType)),
        );
        const stored = (options.artifact ?? []).map(parseArtifact);
        const within = parseAcceptWithin(options.acceptWithin);
        const to = normalizeAgentUrl(options.to);
        const ref = await findCase(holdfast, options.case ?? caseFile.case_id, options.root);
        // Everything that can be found wrong is looked for before the first thing is stored.
        await holdfast.checkPeer(to, options.contract);
        if (files.length + stored.length > 0) await holdfast.checkServing();
        const evidence = [...stored];
        for (const file of files) {
          const { artifact } = await storeEvidenceFile(holdfast, file, {
            artifactId: `${ref.caseId}.${file.filename}`.replace(/[^A-Za-z0-9_-]/g, '-').slice(0, 128),
            redact: options.redact === true,
            warn: (message) => session.warn(message),
          });
          evidence.push({ artifactId: artifact.artifactId, version: artifact.version });
        }
        const result = await holdfast.handOff({
          ref,
          caseFile,
          to,
          contract: options.contract,
          evidence,
          ...(within === undefined ? {} : { acceptWithinMs: within }),
        });
        return reportOf(result);
      }),
    );
}

type OfferAction = (
  holdfast: Holdfast,
  offer: OfferRow,
  options: OneOffer & { reason?: string },
) => Promise<Result>;

function offerLeaf(
  group: Command,
  name: string,
  summary: string,
  session: Session,
  work: OfferAction,
): Command {
  return leaf(group, `${name} <handoff>`, summary, [
    `handoff ${name} CASE-7001:2 --dir triage`,
    `handoff ${name} CASE-7001:2 --attempt 1 --dir triage`,
  ])
    .option('--attempt <n>', 'which attempt (default: the last)')
    .option(...ROOT_OPTION)
    .action((handoffId: string, options: OneOffer & { reason?: string }) =>
      session.withAgent(options, async (holdfast) =>
        work(holdfast, await findOffer(holdfast, handoffId, options), options),
      ),
    );
}

/** @throws offer_unknown, usage when several roots or senders have such an offer */
async function findOffer(holdfast: Holdfast, handoffId: string, options: OneOffer): Promise<OfferRow> {
  const caseId = handoffId.slice(0, Math.max(0, handoffId.lastIndexOf(':')));
  const root = options.root === undefined ? undefined : normalizeAgentUrl(options.root);
  const offers = (await holdfast.ledger.listOffers(holdfast.config.tenant, { caseId })).filter(
    ({ key }) =>
      key.handoffId === handoffId &&
      (root === undefined || key.root === root) &&
      (options.attempt === undefined || String(key.attempt) === options.attempt),
  );
  const last = offers.toSorted((a, b) => b.key.attempt - a.key.attempt)[0];
  if (!last) throw new HoldfastError('offer_unknown', `There is no offer ${handoffId} in this ledger.`);
  const roots = new Set(offers.map(({ key }) => key.root));
  if (roots.size > 1) {
    throw new HoldfastError(
      'usage',
      `Several cases have an offer ${handoffId}. Say which with --root: ${[...roots].join(', ')}.`,
    );
  }
  return last;
}

const RESULT_EXIT: Readonly<Record<HandOffResult['state'], ExitCode>> = {
  accepted: EXIT.ok,
  rejected: EXIT.rejected,
  withdrawn: EXIT.refused,
  expired: EXIT.refused,
  open: EXIT.undecided,
};

function reportOf(result: HandOffResult): Result {
  const { offer, ...rest } = result;
  return {
    json: { ...rest, offer: shown(offer) },
    text: sentenceOf(result),
    exit: RESULT_EXIT[result.state],
  };
}

function sentenceOf(result: HandOffResult): string {
  const name = `${result.offer.key.handoffId}, attempt ${result.offer.key.attempt}`;
  switch (result.state) {
    case 'accepted':
      return `Accepted: ${result.owner} owns ${result.offer.ref.caseId} at epoch ${result.epoch} (work item ${result.workItem}).`;
    case 'rejected': {
      const fields = result.fields.map(({ path, problem }) => `\n  ${path} ${problem}`).join('');
      const next = result.retryable ? '\nCorrect it and send again: that is the next attempt.' : '';
      const hint = result.hint === null ? '' : `\nHint: ${result.hint}`;
      return `Rejected (${name}): ${result.reason} [${result.code}]${fields}${hint}\nThe case stays with its owner at epoch ${result.offer.epoch}.${next}`;
    }
    case 'open':
      return `Not decided (${name}): ${result.reason} [${result.problem}]\nThe offer stays open. \`holdfast handoff resend ${result.offer.key.handoffId}\` delivers the same bytes again.`;
    case 'withdrawn':
    case 'expired':
      return `The offer (${name}) is closed: ${result.state}. The case stays with its owner at epoch ${result.offer.epoch}.`;
  }
}

/** Without the message, which holds the content, as a document where one offer is asked for. */
function shown({ message, receiptKey: _, ...offer }: OfferRow) {
  return { ...offer, message_bytes: Buffer.byteLength(message) };
}

function showOffer(offer: OfferRow): string {
  const fields = printFields([
    ['handoff', offer.key.handoffId],
    ['attempt', offer.key.attempt],
    ['root', offer.key.root],
    ['from', offer.key.sender],
    ['to', offer.toAgent],
    ['contract', offer.contract],
    ['state', offer.state],
    ['code', offer.code],
    ['epoch', offer.epoch],
    ['digest', offer.digest],
    ['accept by', offer.acceptBy],
    ['intended', offer.intendedAt],
    ['closed', offer.closedAt],
    ['receipt', offer.receipt === null ? null : 'verified'],
  ]);
  if (offer.withheld.length === 0) return fields;
  return `${fields}\n\nKept back\n${printTable(
    ['PATH', 'RULE'],
    offer.withheld.map(({ path, rule }) => [path, rule]),
  )}`;
}

function parseArtifact(text: string): { artifactId: string; version?: number } {
  const match = /^([^@]+)(?:@([1-9]\d{0,8}))?$/.exec(text);
  if (!match?.[1]) throw new HoldfastError('usage', '--artifact is an artifact id, or id@version.');
  return { artifactId: match[1], ...(match[2] === undefined ? {} : { version: Number(match[2]) }) };
}

function parseAcceptWithin(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = parseDuration(text);
  if (ms === null || ms < 1000)
    throw new HoldfastError('usage', '--accept-within is a duration from 1s, such as 30m.');
  return ms;
}
