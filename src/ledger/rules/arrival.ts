import { actsFor, HoldfastError, toUtc } from '../../core/index.js';
import type { AcceptCommand, SeparateAcceptance } from '../commands.js';
import type { AuditFact, CaseRow, KindDefinition, Transfer } from '../model.js';
import { boundsOf } from './facts.js';
import { offerRow } from './offers.js';
import { contradicted } from './quarantine.js';
import type { Change, LedgerView, Ruling, StoredOffer } from './ruling.js';
import {
  begins,
  chainTo,
  isFor,
  isInside,
  kept,
  learned,
  released,
  type Step,
  sameKey,
} from './transfers.js';

/** The case as an acceptance finds it, once what the envelope proves has been taken over. Nothing of it stands unless the case is accepted. */
export interface Arrival {
  readonly row: CaseRow | null;
  readonly kind: KindDefinition | null;
  readonly changes: readonly Change[];
  readonly facts: readonly AuditFact[];
  /** Whether this ledger's own offer of the case, if one was open, is released. */
  readonly released: boolean;
}

/** A `shared` case is as it stands. A `separate` one may have moved where this ledger could not see it, or be new here. */
export function arrive(view: LedgerView, command: AcceptCommand): Arrival | Ruling<never> {
  const { ref, separate } = command;
  const row = view.case(ref);
  const kind = view.kind(ref.tenant, row?.kind ?? command.kind);
  if (kind?.mode !== 'separate') return asItStands(row, kind);
  if (separate === undefined) {
    throw new HoldfastError(
      'usage',
      'An acceptance in a separate kind brings its receipt, provenance and effects.',
    );
  }
  if (row === null) return firstContact(view, command, kind, separate);
  return row.status === 'open' ? follow(view, command, row, kind, separate) : asItStands(row, kind);
}

function asItStands(row: CaseRow | null, kind: KindDefinition | null): Arrival {
  return { row, kind, changes: [], facts: [], released: false };
}

/** Takes over, one after another, what happened since this ledger last knew; what does not follow is left to the judge of owner and epoch. */
function follow(
  view: LedgerView,
  { principal, toAgent }: AcceptCommand,
  found: CaseRow,
  kind: KindDefinition,
  { provenance }: SeparateAcceptance,
): Arrival | Ruling<never> {
  const steps: Step[] = [];
  let row = found;
  let isReleased = false;
  for (const transfer of provenance) {
    if (transfer.newEpoch <= row.epoch) continue;
    if (!begins(row, transfer)) break;
    const open = steps.length === 0 ? openAt(view, row) : null;
    if (open !== null && sameKey(open.key, transfer.key)) {
      // For other bytes than were offered: it proves nothing about them.
      if (!isFor(open, transfer)) break;
      isReleased = true;
    } else if (
      open !== null ||
      actsFor(transfer.key.sender) === toAgent ||
      actsFor(transfer.toAgent) === toAgent
    ) {
      // What the agent itself offered or accepted, its ledger would know. Where the agent has signed it, or one to whom the case is
      // known to have been offered, the ledger lacks something; of anybody else it is only said, and said by whom it serves.
      if (actsFor(transfer.toAgent) !== toAgent && !isAddressed(view, row, transfer)) break;
      return contradicted(view, transfer, row, open);
    }
    const step =
      open === null ? learned(row, transfer, principal.agent) : released(view, row, offerRow(open), transfer);
    steps.push(step);
    row = step.to;
  }
  return {
    row,
    kind,
    changes: steps.flatMap((step) => step.changes),
    facts: steps.map((step) => step.fact),
    released: isReleased,
  };
}

/** One that stayed open when the case was found to have moved on is of an earlier epoch, and bars nothing. */
function openAt(view: LedgerView, row: CaseRow): StoredOffer | null {
  const open = view.openOffer(row.ref);
  return open !== null && open.epoch === row.epoch ? open : null;
}

/** Whether this ledger offered the case, at that epoch, to who signed the receipt. */
function isAddressed(view: LedgerView, { ref }: CaseRow, { key, toAgent }: Transfer): boolean {
  return view
    .offersOf(ref)
    .some((offer) => offer.key.handoffId === key.handoffId && offer.toAgent === toAgent);
}

/**
 * The case is imported for its owner if that is the root itself, or if the chain from the root to it is proved. Where this node is the
 * root, or has owned the case, it would know the case: it does not, so whoever says so is wrong, or its ledger lost it.
 */
function firstContact(
  view: LedgerView,
  command: AcceptCommand,
  kind: KindDefinition,
  { provenance }: SeparateAcceptance,
): Arrival {
  const { ref, epoch, principal, toAgent } = command;
  const owner = principal.agent;
  const chain = chainTo(provenance, ref, owner, epoch);
  const parties = chain.filter((transfer) => !isInside(transfer)).map(({ key }) => key.sender);
  const proved = owner === ref.root || parties.includes(ref.root);
  if (!proved || toAgent === ref.root || parties.includes(toAgent)) return asItStands(null, kind);
  const row: CaseRow = {
    ref,
    kind: kind.kind,
    status: 'open',
    // The sender, or the person of it that its node names.
    owner: chain.at(-1)?.toAgent ?? owner,
    epoch,
    openedBy: owner,
    openedAt: toUtc(view.now),
    closedAt: null,
    contract: null,
    constraints: { caps: {}, prohibitions: [], operations: null },
    hops: parties,
    tasksLeft: kind.limits.maxTasks - parties.length,
  };
  const steps = chain.map((transfer) => kept(transfer, owner));
  return {
    row,
    kind,
    changes: [{ do: 'open_case', row }, ...steps.flatMap((step) => step.changes)],
    facts: [
      {
        type: 'case_imported',
        actor: owner,
        epochAfter: epoch,
        rule: 'H1',
        data: { kind: kind.kind, owner: row.owner, bounds: boundsOf(row), importedFrom: owner },
      },
      ...steps.map((step) => step.fact),
    ],
    released: false,
  };
}
