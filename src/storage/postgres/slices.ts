import type { Change } from '../../ledger/index.js';
import { refKey } from '../memory/keys.js';
import { batcher } from './batches.js';
import { candidateTable } from './candidates.js';
import type { Command } from './changes.js';
import { freeOffers, freeWork } from './claims.js';
import type { Connections, Session } from './connection.js';
import { freePending } from './pending.js';
import { pushRows } from './push.js';
import type { Scope } from './scope.js';
import { Slice, type SliceColumns } from './slice.js';
import { encodeJson } from './text.js';

const SLICES = { name: 'slices', text: 'SELECT * FROM holdfast.slices($1)' };

/** Cases whose slices are kept. */
const KEPT = 512;

const OF_PENDING: ReadonlySet<Change['do']> = new Set(['add_pending', 'set_pending']);

const INT_MAX = 2 ** 31 - 1;

/** Loads slices, those that are asked for at one moment together, and keeps the last ones: good guesses at what a case is now. */
export class Slices {
  readonly #load: (scope: Scope) => Promise<SliceColumns>;
  readonly #kept = new Map<string, Slice>();

  constructor(connections: Connections, options: { readonly lanes: number; readonly waiting: number }) {
    this.#load = batcher({ ...options, most: 64 }, (scopes: readonly Scope[]) =>
      connections.use((session) => ask(session, scopes)),
    );
  }

  /** A guess, where a slice with all of the scope is kept. */
  guess(scope: Scope): Slice | undefined {
    const slice = scope.ref === undefined ? undefined : this.#kept.get(idOf(scope.ref));
    return slice?.covers(scope) ? slice : undefined;
  }

  /** The case as it is now. */
  async load(scope: Scope): Promise<Slice> {
    return this.#keep(scope, await this.#load(scope));
  }

  /** The same inside a transaction, which holds the case, or what can be claimed. */
  async loadIn(session: Session, scope: Scope, nowOf: (slice: Slice) => Date): Promise<Slice> {
    const [row] = await ask(session, [scope]);
    const slice = new Slice(scope, row as SliceColumns);
    if (scope.offers !== undefined)
      slice.offerFree(await freeOffers(session, scope.offers, nowOf(slice)), []);
    if (scope.items !== undefined) slice.offerFree([], await freeWork(session, scope.items, nowOf(slice)));
    if (scope.pending !== undefined)
      slice.addPending(await freePending(session, scope.pending, nowOf(slice)), []);
    if (scope.pushes !== undefined)
      slice.addPushes(await pushRows(session, scope.tenant, scope.pushes, nowOf(slice)));
    if (scope.candidates === true) {
      const { plan, task } = candidateTable((statement, values) => session.query(statement, values));
      const { ref, key } = scope;
      slice.addCandidates(
        ref === undefined ? null : await plan(ref),
        key === undefined ? null : await task(key),
      );
    }
    return slice;
  }

  /** The slice after its changes were committed is the best guess at what comes next. */
  advance(slice: Slice, { changes, newHead }: Pick<Command, 'changes' | 'newHead'>): void {
    if (slice.ref === undefined || newHead === null) return;
    // With its task, which a slice does not keep.
    if (changes.some((change) => OF_PENDING.has(change.do))) {
      this.forget({ ref: slice.ref });
      return;
    }
    slice.advance(changes, newHead);
    this.#put(idOf(slice.ref), slice);
  }

  /** No longer a guess that is worth making. */
  forget({ ref }: Pick<Scope, 'ref'>): void {
    if (ref !== undefined) this.#kept.delete(idOf(ref));
  }

  #keep(scope: Scope, row: SliceColumns): Slice {
    const slice = new Slice(scope, row);
    if (scope.ref === undefined || scope.taskId !== undefined) return slice;
    const id = idOf(scope.ref);
    const before = this.#kept.get(id);
    // The same head is the same case: what was looked up then and now are parts of one slice.
    const same = before !== undefined && before.head?.hash === slice.head?.hash;
    if (same && before.kind?.revision === slice.kind?.revision) {
      before.add(scope, row);
      this.#put(id, before);
    } else {
      this.#put(id, slice);
    }
    return slice;
  }

  #put(id: string, slice: Slice): void {
    this.#kept.delete(id);
    this.#kept.set(id, slice);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }
}

async function ask(session: Session, scopes: readonly Scope[]): Promise<SliceColumns[]> {
  const asked = scopes.map(({ tenant, ref, key, kind, workId, taskId, other, holder }, n) => ({
    n,
    tenant,
    root: ref?.root,
    case_id: ref?.caseId,
    sender: key?.sender,
    handoff_id: key?.handoffId,
    // Whatever number a caller presents: none that is no attempt's finds one.
    attempt:
      key !== undefined && Number.isInteger(key.attempt) && Math.abs(key.attempt) <= INT_MAX
        ? key.attempt
        : 0,
    kind,
    work_id: workId,
    task_id: taskId,
    other_root: other?.root,
    other_case_id: other?.caseId,
    holder,
  }));
  const rows = await session.query<SliceColumns>(SLICES, [encodeJson({ asked })]);
  return rows.sort((a, b) => a.n - b.n);
}

const idOf = (ref: NonNullable<Scope['ref']>): string => JSON.stringify(refKey(ref));
