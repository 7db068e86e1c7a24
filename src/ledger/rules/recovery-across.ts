import { actsFor, HoldfastError, toUtc } from '../../core/index.js';
import type { RecoverCaseCommand } from '../commands.js';
import type { AuditFact, CaseRow, KindDefinition, Quarantine, Transfer } from '../model.js';
import { openedRow } from './cases.js';
import { boundsOf } from './facts.js';
import { voided } from './people.js';
import type { Change, LedgerView } from './ruling.js';
import { isInside, kept } from './transfers.js';

/*
 * A case of a `separate` kind has other ledgers that go on, so that a recovery here cannot set an epoch of its own: nobody else would know
 * of it, and a later handover would be refused. The person says who owns the case by what was found there, and this ledger follows to that
 * owner, at the highest epoch that was seen. Where it is the receipt of the quarantine that they found to be right, it is kept, so that the
 * chain from the root can still be proved.
 *
 * After a takeover by force both sides are quarantined, each by the other's word. The offer that was in doubt is closed with the recovery: what
 * it came to is what the person has found.
 */
export interface Recovered {
  readonly to: CaseRow;
  readonly changes: readonly Change[];
  readonly facts: readonly AuditFact[];
  readonly superseded: readonly string[];
  readonly bounds: Readonly<Record<string, unknown>>;
}

export function recoverAcross(
  view: LedgerView,
  row: CaseRow | null,
  kind: KindDefinition,
  command: RecoverCaseCommand & { readonly actor: string; readonly epochSeen: number },
): Recovered {
  const { ref, owner, actor, epochSeen, quarantine } = command;
  if (owner === undefined || owner === '') {
    throw new HoldfastError(
      'usage',
      `Cases of kind ${kind.kind} are of the mode separate: say who owns it (--owner), by what was found in the other ledgers.`,
    );
  }
  const proof = proofOf(quarantine, ref, owner, epochSeen, view);
  const proved = proof === null ? { changes: [], fact: null } : kept(proof, actor);
  const facts = proved.fact === null ? [] : [proved.fact];
  if (row === null) {
    const opened = openedRow({ ref, owner, epoch: epochSeen, actor }, kind, toUtc(view.now));
    // As the next envelope will have to say it, as far as it is known.
    const hops = proof === null || isInside(proof) ? [] : [proof.key.sender];
    const to: CaseRow = { ...opened, hops, tasksLeft: opened.tasksLeft - hops.length };
    const begun: Change[] = [
      { do: 'lift_quarantine', ref, from: null, epoch: epochSeen },
      { do: 'open_case', row: to },
    ];
    const bounds = { kind: kind.kind, bounds: boundsOf(to) };
    return { to, changes: [...begun, ...proved.changes], facts, superseded: [], bounds };
  }
  const { to, changes } = follow(row, owner, epochSeen, quarantine);
  const doubt = isInDoubt(view, to, quarantine) ? voided(view, ref, command) : { changes: [], facts: [] };
  const at = toUtc(view.now);
  const left = row.owner === owner ? [] : view.openWork(ref);
  const superseded = left.map(
    (item): Change => ({ do: 'supersede_work', row: { ...item, state: 'superseded', settledAt: at } }),
  );
  return {
    to,
    changes: [...changes, ...doubt.changes, ...superseded, ...proved.changes],
    facts: [...facts, ...doubt.facts],
    superseded: left.map(({ id }) => id),
    bounds: row.owner === owner ? {} : { bounds: boundsOf(to) },
  };
}

/** Owner and epoch move together, by one, from what the epoch would be had nothing been lost. */
function follow(
  row: CaseRow,
  owner: string,
  seen: number,
  quarantine: Pick<Quarantine, 'witnessed'>,
): Pick<Recovered, 'to' | 'changes'> {
  const { ref, epoch } = row;
  if (row.owner === owner) {
    return {
      to: { ...row, epoch: seen },
      changes: [{ do: 'lift_quarantine', ref, from: epoch, epoch: seen }],
    };
  }
  const before = epoch === seen ? seen : seen - 1;
  const to: CaseRow = { ...row, owner, epoch: before + 1, ...wayTo(row, owner, quarantine) };
  return {
    to,
    changes: [
      { do: 'lift_quarantine', ref, from: epoch, epoch: before },
      { do: 'move_case', guard: { ref, owner: row.owner, epoch: before }, to },
    ],
  };
}

/** One more handover; none where the owners are of one node; and one less where the case was taken back, so that this agent never had it. */
function wayTo(
  row: CaseRow,
  owner: string,
  { witnessed }: Pick<Quarantine, 'witnessed'>,
): Pick<CaseRow, 'hops' | 'tasksLeft'> {
  const { hops, tasksLeft } = row;
  const [before, node] = [actsFor(row.owner), actsFor(owner)];
  if (before === node) return { hops, tasksLeft };
  const isTakenBack = actsFor(String(witnessed.from)) === node && actsFor(String(witnessed.toAgent)) === node;
  if (isTakenBack && hops.at(-1) === node) return { hops: hops.slice(0, -1), tasksLeft: tasksLeft + 1 };
  return { hops: [...hops, before], tasksLeft: tasksLeft - 1 };
}

/** Whether the receipt is of the very offer that is open here still, from before a takeover by force. */
function isInDoubt(view: LedgerView, { ref, epoch }: CaseRow, { witnessed }: Pick<Quarantine, 'witnessed'>) {
  const open = view.openOffer(ref);
  return (
    open !== null &&
    open.epoch < epoch &&
    open.key.sender === witnessed.from &&
    open.key.handoffId === witnessed.handoffId &&
    open.key.attempt === witnessed.attempt
  );
}

/** The receipt of the quarantine, where it says what the person found, and its epoch is not proved otherwise. */
function proofOf(
  { witnessed }: Pick<Quarantine, 'witnessed'>,
  ref: CaseRow['ref'],
  owner: string,
  epochSeen: number,
  view: LedgerView,
): Transfer | null {
  const { from, handoffId, attempt, toAgent, epoch, digest, receipt, receiptKey } = witnessed;
  if (receiptKey === undefined || toAgent !== owner || Number(epoch) !== epochSeen) return null;
  if (view.transfers(ref).some(({ newEpoch }) => newEpoch === epochSeen)) return null;
  return {
    key: {
      tenant: ref.tenant,
      root: ref.root,
      sender: String(from),
      handoffId: String(handoffId),
      attempt: Number(attempt),
    },
    ref,
    toAgent,
    oldEpoch: epochSeen - 1,
    newEpoch: epochSeen,
    digest: String(digest),
    receipt: String(receipt),
    receiptKey: String(receiptKey),
  };
}
