import { CASE_ID_PATTERN, HoldfastError, newId, sha256Hex, toUtc } from '../../core/index.js';
import type { AddNoteCommand, OpenCaseCommand, OwnerWrite } from '../commands.js';
import type { CaseRow, KindDefinition, NoteRow } from '../model.js';
import { isSettled } from './effects.js';
import { atEpoch, boundsOf, loggableId, refuse, storable } from './facts.js';
import { fence, isRefused } from './fence.js';
import { peersOf, waivedIn } from './incarnation.js';
import type { Rule } from './ruling.js';

/*
 * A case is `open`, with exactly one owner at one epoch, until it is `closed`.
 *   (none) -> open     open_case, at epoch 1 or at that of an audited import
 *   open   -> open     an acceptance (decisions.ts), or a person takes it, passes it on or gives it back (people.ts): another owner, epoch + 1
 *   open   -> closed   by the owner, when nothing is out: final, and the epoch never moves again
 */

export const openCase: Rule<OpenCaseCommand, CaseRow> = (view, command) => {
  const { ref, kind: kindName, owner, epoch, actor } = command;
  if (!CASE_ID_PATTERN.test(ref.caseId)) throw new HoldfastError('usage', 'Not a case id.');
  if (!Number.isSafeInteger(epoch) || epoch < 1)
    throw new HoldfastError('usage', 'An epoch is a whole number from 1.');
  if (ref.tenant === '' || ref.root === '' || owner === '')
    throw new HoldfastError('usage', 'A case has a tenant, a root and an owner.');
  const refused = { write: 'open_case', ref, writer: actor };
  if (view.case(ref) !== null) return refuse({ ...refused, code: 'case_exists' });
  const kind = view.kind(ref.tenant, kindName);
  if (kind === null) return refuse({ ...refused, code: 'kind_unknown' });
  const row = openedRow(command, kind, toUtc(view.now));
  const imported = epoch > 1 || command.importedFrom !== undefined;
  const source = command.importedFrom === undefined ? {} : { importedFrom: loggableId(command.importedFrom) };
  return {
    changes: [{ do: 'open_case', row }],
    audit: {
      ref,
      facts: [
        {
          type: imported ? 'case_imported' : 'case_opened',
          actor,
          epochAfter: epoch,
          rule: 'H1',
          data: { kind: kindName, owner, bounds: boundsOf(row), ...source },
        },
      ],
    },
    result: row,
  };
};

/** A case without a past. */
export function openedRow(
  { ref, owner, epoch, actor }: Pick<OpenCaseCommand, 'ref' | 'owner' | 'epoch' | 'actor'>,
  { kind, limits }: KindDefinition,
  openedAt: string,
): CaseRow {
  return {
    ref,
    kind,
    status: 'open',
    owner,
    epoch,
    openedBy: actor,
    openedAt,
    closedAt: null,
    contract: null,
    constraints: { caps: {}, prohibitions: [], operations: null },
    hops: [],
    tasksLeft: limits.maxTasks,
  };
}

export const closeCase: Rule<OwnerWrite, CaseRow> = (view, command) => {
  const write = 'close_case';
  const standing = fence(view, write, command);
  if (isRefused(standing)) return standing;
  const { ref, writer } = command;
  const offers = view.openOffer(ref) === null ? 0 : 1;
  const workItems = view.openWork(ref).length;
  const effects = view.effects(ref).filter((effect) => !isSettled(effect)).length;
  if (offers + workItems + effects > 0) {
    return refuse({ write, ref, writer, code: 'case_busy', data: { offers, workItems, effects } });
  }
  const peers = peersOf(view, view.kind(ref.tenant, standing.case.kind), writer);
  if (peers.missing !== null) {
    return refuse({ write, ref, writer, code: 'peers_unanswered', data: peers.missing });
  }
  const closedAt = toUtc(view.now);
  const data = waivedIn(peers);
  return {
    changes: [{ do: 'close_case', guard: standing.guard, closedAt }],
    audit: {
      ref,
      facts: [
        {
          type: 'case_closed',
          actor: writer,
          ...atEpoch(command.epoch),
          rule: 'H3',
          ...(peers.waived.length === 0 ? {} : { data }),
        },
      ],
    },
    result: { ...standing.case, status: 'closed', closedAt },
  };
};

export const addNote: Rule<AddNoteCommand, NoteRow> = (view, command) => {
  const standing = fence(view, 'add_note', command);
  if (isRefused(standing)) return standing;
  const { ref, writer, epoch } = command;
  const text = storable(command.text);
  const row: NoteRow = { id: newId('note'), ref, epoch, writer, text, at: toUtc(view.now) };
  return {
    changes: [{ do: 'add_note', guard: standing.guard, row }],
    audit: {
      ref,
      facts: [
        {
          type: 'note_added',
          actor: writer,
          ...atEpoch(epoch),
          rule: 'H3',
          digest: sha256Hex(text),
          data: { noteId: row.id },
        },
      ],
    },
    result: row,
  };
};
