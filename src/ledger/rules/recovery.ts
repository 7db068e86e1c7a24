import { HoldfastError, parsePerson, sha256Hex, toUtc } from '../../core/index.js';
import type { RecoverCaseCommand } from '../commands.js';
import type { CaseRow, Quarantine } from '../model.js';
import { openedRow } from './cases.js';
import { inFlight } from './effects.js';
import { boundsOf } from './facts.js';
import { notOwner } from './ownership.js';
import { cleared, mayTake } from './people.js';
import { recoverAcross } from './recovery-across.js';
import { resolutionOf } from './resolution.js';
import type { Change, LedgerView, Rule } from './ruling.js';

/*
 * The way out of a quarantine: the ledger has lost part of the case, and a person says that it goes on from what is there. It goes on one
 * epoch above the highest that anybody has seen, so that none is issued twice and whatever was written under the lost ones is stale;
 * and with that person as its owner, who alone can know what was done meanwhile. Nothing is written to the chain unless that commits.
 */
export const recoverCase: Rule<RecoverCaseCommand, CaseRow> = (view, command) => {
  const { ref, above, quarantine, resolution } = command;
  const actor = resolution.by;
  const node = parsePerson(actor)?.node;
  if (node === undefined) throw new HoldfastError('usage', 'A case is recovered by a person.');
  if (!Number.isSafeInteger(above) || above < 1 || above >= Number.MAX_SAFE_INTEGER) {
    throw new HoldfastError('usage', 'The highest epoch that was seen is a whole number from 1.');
  }
  if (above < Number(quarantine.witnessed.epoch ?? 0)) {
    throw new HoldfastError(
      'usage',
      `The case was seen at epoch ${quarantine.witnessed.epoch}, above ${above}.`,
    );
  }
  const said = resolutionOf(resolution, actor);
  if (!view.quarantined(ref)) throw new HoldfastError('usage', 'The case is not quarantined.');
  const row = view.case(ref);
  if ((row?.epoch ?? null) !== command.epoch) {
    throw new HoldfastError('epoch_stale', 'The case is not at the epoch at which it was looked at.');
  }
  const before = Math.max(above, row?.epoch ?? 0);
  const kind = view.kind(ref.tenant, row?.kind ?? command.kind ?? '');
  const isAcross = kind?.mode === 'separate';
  if (isAcross && row?.status === 'closed') throw new HoldfastError('case_closed');
  if (!isAcross && command.owner !== undefined) {
    throw new HoldfastError(
      'usage',
      'Only a case of a separate kind can be owned elsewhere: the person owns it.',
    );
  }
  const recovered = isAcross
    ? recoverAcross(view, row, kind, { ...command, actor, epochSeen: before })
    : row === null
      ? missing(view, { ...command, actor }, before + 1)
      : found(view, row, { ...command, actor, node, before });
  const { to, superseded, bounds } = recovered;
  return {
    changes: recovered.changes,
    audit: {
      ref,
      facts: [
        ...(isAcross ? [] : recovered.facts),
        {
          type: 'case_recovered',
          actor,
          ...(row === null ? {} : { epochBefore: row.epoch }),
          epochAfter: to.epoch,
          rule: 'H2',
          data: {
            from: row?.owner ?? null,
            to: to.owner,
            ...said,
            superseded,
            ...bounds,
            lost: lostOf(quarantine),
          },
        },
        ...(isAcross ? recovered.facts : []),
      ],
    },
    result: to,
  };
};

function found(
  view: LedgerView,
  row: CaseRow,
  command: Pick<RecoverCaseCommand, 'voids'> & {
    readonly actor: string;
    readonly node: string;
    readonly before: number;
  },
) {
  const { actor, node, before } = command;
  const { ref, owner, epoch } = row;
  if (row.status === 'closed') throw new HoldfastError('case_closed');
  if (!mayTake(row, node)) {
    const { code, message, data } = notOwner(row);
    throw new HoldfastError(code, message, { data });
  }
  const flying = inFlight(view, view.effects(ref));
  if (flying !== undefined)
    throw new HoldfastError('effect_in_flight', undefined, { data: { key: flying.key } });
  const to: CaseRow = { ...row, owner: actor, epoch: before + 1 };
  const { changes, facts, superseded } = cleared(view, ref, command);
  // Owner and epoch move together, by one, from what the epoch would be had nothing been lost.
  const moved: Change[] =
    owner === actor
      ? [{ do: 'lift_quarantine', ref, from: epoch, epoch: to.epoch }]
      : [
          { do: 'lift_quarantine', ref, from: epoch, epoch: before },
          { do: 'move_case', guard: { ref, owner, epoch: before }, to },
        ];
  return { to, changes: [...moved, ...changes], facts, superseded, bounds: {} };
}

function missing(
  view: LedgerView,
  { ref, actor, kind: name }: RecoverCaseCommand & { readonly actor: string },
  epoch: number,
) {
  if (parsePerson(actor)?.node !== ref.root) {
    throw new HoldfastError('not_owner', 'A case that is missing is recovered by the agent that opened it.');
  }
  if (name === undefined) throw new HoldfastError('usage', 'The case is missing: say of which kind it was.');
  const kind = view.kind(ref.tenant, name);
  if (kind === null) throw new HoldfastError('kind_unknown');
  const to = openedRow({ ref, owner: actor, epoch, actor }, kind, toUtc(view.now));
  const changes: Change[] = [
    { do: 'lift_quarantine', ref, from: null, epoch },
    { do: 'open_case', row: to },
  ];
  return { to, changes, facts: [], superseded: [], bounds: { kind: name, bounds: boundsOf(to) } };
}

/** A receipt only as its digest. */
function lostOf({ reason, witnessed }: Pick<Quarantine, 'reason' | 'witnessed'>): Record<string, unknown> {
  const { receipt, receiptKey: _, ...place } = witnessed;
  return { reason, ...place, ...(typeof receipt === 'string' ? { receiptDigest: sha256Hex(receipt) } : {}) };
}
