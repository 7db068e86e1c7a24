import { compareWithLedger, replay, verifyChain } from '../audit/index.js';
import { canonical, parseUtc } from '../core/index.js';
import type { HandoffEnvelope } from '../envelope/index.js';
import type { CaseSnapshot, TaskRow, WorkItem } from '../ledger/index.js';
import { EVIDENCE_PATH } from '../protocol/index.js';
import type { Crossed, Observation, RunState } from './expectation.js';
import { CASE_ID, FOREIGN_CASE_ID, UNKNOWN_CASE_ID } from './fixture.js';
import { findLeaks } from './leaks.js';
import type { Stage } from './stage.js';
import type { LedgerName, Role } from './standing.js';

/** Reads what a play left behind: in each ledger, on the wire, in the business systems and on the disk. */
export async function observe(stage: Stage): Promise<Observation> {
  const { world } = stage;
  const { ledgers } = world;
  const pointer = await world.triage.call('statusPointer', { ref: world.ref });
  const strayDials = await world.billing.call('refusedDials', {});
  const standing = await stage.look('the end');
  const books = await Promise.all(ledgers.names.map((name) => readBook(stage, name)));
  const bookOf = (role: Role) =>
    books.find(({ name }) => name === ledgers.nameFor(role)) ?? fail(`there is no ledger of ${role}`);
  const sent = bookOf('triage').main;
  const receivers = [...new Set(world.roles().slice(1).map(bookOf))];
  const received = receivers.map(({ main }) => main);
  const exchanges = (name: Role) => world.proxy(name).exchanges();

  const state: RunState = {
    ...standing,
    pointer: { status: pointer.status, owner: world.ownerOf(pointer.owner) },
    offers: sent.offers.map(({ key, state, code }) => ({ attempt: key.attempt, state, code })),
    decisions: receivers
      .flatMap(({ snapshots }) => snapshots.flatMap(({ decisions }) => decisions))
      .map(({ key, verdict, code }) => ({ handoffId: key.handoffId, attempt: key.attempt, verdict, code })),
    refused: stage.refused,
    work: received.flatMap(({ work }) => work.map(({ state }) => state)),
    notes: sum(books, ({ main }) => main.notes.length),
    effects: received
      .flatMap(({ effects }) => effects)
      .map(({ operation, amount, key, epoch, state }) => ({
        operation,
        amount: amount?.amount ?? '',
        currency: amount?.currency ?? '',
        key,
        epoch,
        state,
      })),
    attempts: world.systems.attempts(),
    crossed: crossedBy(received.flatMap(({ work }) => work)),
    withheld: sent.offers.at(-1)?.withheld.map(({ path }) => path) ?? [],
    evidenceFetches: exchanges('triage').filter(
      ({ method, path }) => method === 'GET' && path.startsWith(`${EVIDENCE_PATH}/`),
    ).length,
    cases: Object.fromEntries(books.map(({ name, cases }) => [name, cases])),
    contexts: sum(receivers, ({ tasks }) => new Set(tasks.map(({ contextId }) => contextId)).size),
    deliveries: {
      repeated: sum(receivers, ({ main }) => count(main, 'delivery_repeated')),
      conflicting: sum(receivers, ({ main }) => count(main, 'delivery_conflict')),
    },
    repliesLost: exchanges('billing').filter(({ fate }) => fate === 'reply_dropped').length,
    strayDials,
    trail: stage.trail,
    writesRefused: sum(books, ({ main }) => count(main, 'write_refused')),
  };
  stage.stopLooking();
  // Reading a file of an open SQLite database, as is done next, lets go of the locks that this process has on it.
  await world.closeLedgers();
  return {
    state,
    owner: pointer.owner,
    audit: {
      verified: books.every((book) => book.snapshots.every(isAudited)),
      entries: sum(books, ({ main }) => main.audit.length),
    },
    observed: stage.observed,
    leaks: findLeaks({
      exchanges: world.agents().flatMap(({ proxy }) => proxy.exchanges()),
      output: Object.fromEntries(world.agents().map(({ name }) => [name, world.output(name)])),
      audit: canonical(books.flatMap((book) => book.snapshots.map(({ audit }) => audit))),
      ledger: JSON.stringify(books),
      dir: world.dir,
    }),
  };
}

/** What one ledger holds of the scenario. */
interface Book {
  readonly name: LedgerName;
  readonly main: CaseSnapshot;
  readonly snapshots: readonly CaseSnapshot[];
  readonly cases: readonly string[];
  /** Tasks kept there for triage. */
  readonly tasks: readonly TaskRow[];
}

async function readBook({ world }: Stage, name: LedgerName): Promise<Book> {
  const read = (caseId: string) => world.ledgers.snapshot(name, world.refOf(caseId));
  const main = await read(CASE_ID);
  const others = [await read(FOREIGN_CASE_ID), await read(UNKNOWN_CASE_ID)];
  const cases = await world.ledgers.listCases(name);
  const tasks = await world.ledgers.listTasks(name, world.urlOf('triage'));
  return { name, main, snapshots: [main, ...others], cases, tasks };
}

function sum(books: readonly Book[], of: (book: Book) => number): number {
  return books.reduce((total, book) => total + of(book), 0);
}

function count({ audit }: CaseSnapshot, type: string): number {
  return audit.filter((entry) => entry.type === type).length;
}

function fail(why: string): never {
  throw new Error(why);
}

/** The chain is whole, and what it tells is what the ledger holds. */
function isAudited(snapshot: CaseSnapshot): boolean {
  return verifyChain(snapshot.audit).ok && compareWithLedger(replay(snapshot.audit), snapshot).length === 0;
}

function crossedBy([item]: readonly WorkItem[]): Crossed | null {
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
