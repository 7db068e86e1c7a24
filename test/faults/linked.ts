import { readFileSync } from 'node:fs';
import { type Clock, systemClock } from '../../src/core/index.js';
import {
  type CaseRef,
  type HandOffResult,
  type Holdfast,
  openHoldfast,
  parseCaseFile,
  refundDispute,
} from '../../src/index.js';
import type { CaseSnapshot } from '../../src/ledger/index.js';
import { CASE_FILE, freePort, initPair, temporaryFolder } from '../cli/support.js';
import { type Exchange, FaultProxy } from './proxy.js';

/** Two real nodes, and a link between them that fails on demand: what triage sends to billing goes through it. */
export interface Linked {
  readonly triage: Holdfast;
  readonly billing: Holdfast;
  readonly link: FaultProxy;
  /** How often each effect reached its target. */
  readonly effects: Map<string, number>;
  /** Messages that triage sent, as they left. */
  sent(): Exchange[];
  open(caseId: string): Promise<CaseRef>;
  /** From triage to billing, or back. */
  handOff(ref: CaseRef, from?: Holdfast): Promise<HandOffResult>;
  snapshot(ref: CaseRef): Promise<CaseSnapshot>;
  close(): Promise<void>;
}

/** `clocks`: what each node takes for the time; the system's where absent. */
export async function startLinked(clocks: { triage?: Clock; billing?: Clock } = {}): Promise<Linked> {
  const folder = temporaryFolder();
  const agents = await initPair(folder.path);
  const open = (dir: string, clock: Clock = systemClock) => openHoldfast({ dir, ports: { clock } });
  const triage = await open(agents.triage.dir, clocks.triage);
  const billing = await open(agents.billing.dir, clocks.billing);
  const effects = new Map<string, number>();
  billing.onHandoff(refundDispute, {
    async work(work) {
      await work.effect({
        key: 'refund-pay_B',
        operation: 'refund',
        amount: { amount: '49.00', currency: 'EUR' },
        perform: async (key) => {
          const called = `${work.ref.caseId} ${key}`;
          effects.set(called, (effects.get(called) ?? 0) + 1);
        },
      });
      await work.done({ decision: 'refunded' });
    },
  });
  // Takes a case back, and leaves it at that.
  triage.onHandoff(refundDispute, {});
  const behind = await freePort();
  const link = new FaultProxy(behind);
  await triage.start();
  await billing.start({ port: behind });
  await link.listen(agents.billing.port);
  const evidence = await Promise.all(
    [triage, billing].map((node) =>
      node.addEvidence(Buffer.from('charged twice'), { filename: 'claim.txt', mediaType: 'text/plain' }),
    ),
  );
  return {
    triage,
    billing,
    link,
    effects,
    sent: () => link.exchanges.filter(({ method }) => method === 'POST'),
    open: async (caseId) => (await triage.openCase({ caseId, kind: 'refund' })).ref,
    handOff: (ref, from = triage) =>
      from.handOff({
        ref,
        caseFile: caseFileOf(ref.caseId),
        to: from === triage ? billing.url : triage.url,
        contract: refundDispute.id,
        evidence: [{ artifactId: evidence[from === triage ? 0 : 1]?.artifactId ?? '' }],
      }),
    snapshot: (ref) => triage.ledger.snapshot(ref),
    async close() {
      await triage.close();
      await billing.close();
      await link.close();
      folder.remove();
    },
  };
}

function caseFileOf(caseId: string) {
  const file = JSON.parse(readFileSync(CASE_FILE, 'utf8'));
  return parseCaseFile(Buffer.from(JSON.stringify({ ...file, case_id: caseId })));
}
