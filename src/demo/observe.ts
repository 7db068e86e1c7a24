import { compareWithLedger, replay, verifyChain } from '../audit/index.js';
import { canonical, parseUtc } from '../core/index.js';
import type { HandoffEnvelope } from '../envelope/index.js';
import type { CaseSnapshot } from '../ledger/index.js';
import { EVIDENCE_PATH } from '../protocol/index.js';
import type { Crossed, Observation, RunState } from './expectation.js';
import { CASE_ID, FOREIGN_CASE_ID, UNKNOWN_CASE_ID } from './fixture.js';
import { findLeaks } from './leaks.js';
import type { Stage } from './stage.js';

/** Reads what a play left behind, from billing's side of the ledger, from the wire, from the business systems and from the disk. */
export async function observe(stage: Stage): Promise<Observation> {
  const { world } = stage;
  const snapshots = new Map<string, CaseSnapshot>();
  for (const caseId of [CASE_ID, FOREIGN_CASE_ID, UNKNOWN_CASE_ID]) {
    snapshots.set(caseId, await world.billing.call('snapshot', { ref: { ...world.ref, caseId } }));
  }
  const main = snapshots.get(CASE_ID) as CaseSnapshot;
  if (!main.case) throw new Error(`${CASE_ID} is gone from the ledger`);
  const cases = await world.billing.call('listCases', {});
  const tasks = await world.billing.call('listTasks', { peer: world.urlOf('triage') });
  const pointer = await world.triage.call('statusPointer', { ref: world.ref });
  const audit = [...snapshots.values()].map((snapshot) => snapshot.audit);
  const count = (type: string) => main.audit.filter((entry) => entry.type === type).length;

  const state: RunState = {
    owner: world.roleOf(main.case.owner),
    epoch: main.case.epoch,
    pointer: { status: pointer.status, owner: world.roleOf(pointer.owner) },
    offers: main.offers.map(({ key, state, code }) => ({ attempt: key.attempt, state, code })),
    decisions: [...snapshots.values()]
      .flatMap((snapshot) => snapshot.decisions)
      .map(({ key, verdict, code }) => ({ handoffId: key.handoffId, attempt: key.attempt, verdict, code })),
    refused: stage.refused,
    work: main.work.map(({ state }) => state),
    notes: main.notes.length,
    effects: main.effects.map(({ operation, amount, key, epoch, state }) => ({
      operation,
      amount: amount?.amount ?? '',
      currency: amount?.currency ?? '',
      key,
      epoch,
      state,
    })),
    attempts: world.systems.attempts(),
    crossed: crossedBy(main),
    withheld: main.offers.at(-1)?.withheld.map(({ path }) => path) ?? [],
    evidenceFetches: world
      .proxy('triage')
      .exchanges()
      .filter(({ method, path }) => method === 'GET' && path.startsWith(`${EVIDENCE_PATH}/`)).length,
    cases: cases.map(({ ref }) => ref.caseId).sort(),
    contexts: new Set(tasks.map(({ contextId }) => contextId)).size,
    deliveries: { repeated: count('delivery_repeated'), conflicting: count('delivery_conflict') },
    repliesLost: world
      .proxy('billing')
      .exchanges()
      .filter(({ fate }) => fate === 'reply_dropped').length,
    strayDials: await world.billing.call('refusedDials', {}),
    trail: stage.trail,
    writesRefused: count('write_refused'),
  };
  return {
    state,
    audit: {
      verified: [...snapshots.values()].every(isAudited),
      entries: main.audit.length,
    },
    leaks: findLeaks({
      exchanges: world.agents().flatMap(({ proxy }) => proxy.exchanges()),
      output: Object.fromEntries(world.agents().map(({ name }) => [name, world.output(name)])),
      audit: canonical(audit),
      ledger: JSON.stringify([[...snapshots.values()], tasks]),
      dir: world.dir,
    }),
  };
}

/** The chain is whole, and what it tells is what the ledger holds. */
function isAudited(snapshot: CaseSnapshot): boolean {
  return verifyChain(snapshot.audit).ok && compareWithLedger(replay(snapshot.audit), snapshot).length === 0;
}

function crossedBy({ work }: CaseSnapshot): Crossed | null {
  const [item] = work;
  if (!item) return null;
  const envelope = JSON.parse(item.envelope) as HandoffEnvelope;
  const { goal, done, remaining, facts, constraints } = envelope;
  return {
    goal,
    done,
    remaining,
    openQuestions: envelope.open_questions,
    facts: facts.map(({ key, source, verified }) => ({ key, source, verified })),
    caps: constraints.caps,
    prohibitions: constraints.prohibitions,
    deadline: parseUtc(constraints.deadline ?? '') !== null,
  };
}
