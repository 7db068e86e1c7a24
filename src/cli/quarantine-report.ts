import { actsFor } from '../core/index.js';
import type { CaseRow, KindDefinition } from '../ledger/index.js';
import type { Explained, Of } from './attention-item.js';

/** Where a row of a quarantine says that the case was seen to be, or is. */
export function placeOf(at: Readonly<Record<string, string | number>>): string {
  const said = [
    at.epoch === undefined ? '' : `epoch ${at.epoch}`,
    at.seq === undefined ? '' : `entry ${at.seq} (${String(at.hash).slice(0, 12)})`,
  ].filter(Boolean);
  return said.length === 0 ? 'nothing' : said.join(', ');
}

/** A case that may not go on until a person has said from where. */
export function explainQuarantine(
  { ref, data }: Of<'case_quarantined'>,
  row: CaseRow | null,
  kinds: readonly KindDefinition[],
  self: string,
): Explained {
  const { reason, witnessed, found } = data;
  const at = [ref.caseId, ...(ref.root === self ? [] : ['--root', ref.root])].join(' ');
  // Taken back by force there: the epoch is the one that came out of it.
  const seen = witnessed.epoch === undefined || isTakenBack(witnessed) ? ' --seen-epoch N' : '';
  const kind = row === null ? ' --kind KIND' : '';
  const isReceipt = reason === 'receipt_contradicted' && witnessed.toAgent !== undefined;
  const isAcross = isOfSeparate(row, kinds);
  const owner = isReceipt ? ` --owner ${witnessed.toAgent}` : isAcross ? ' --owner URL' : '';
  const recover = `holdfast attention resolve ${at} --person ID${seen}${kind}${owner} --reason "TEXT"`;
  if (isReceipt) return explainReceipt({ witnessed, found }, self, recover);
  const here = isAcross || ref.root === self || (row !== null && actsFor(row.owner) === self);
  return {
    fields: [
      ['reason', reason],
      ['witnessed', placeOf(witnessed)],
      ['found', placeOf(found)],
    ],
    history: [],
    safe: [
      'The ledger has lost something of this case: every write to it is refused, and other cases go on.',
      'If a newer state of the ledger can be had, such as the disk of the server before, bring that back: it has no quarantine.',
      'Otherwise find out, from the business systems and from receipts and audit exports that are kept elsewhere, what was done after the state that is there, and up to which epoch anybody has seen the case.',
      isAcross
        ? 'Ask the other organisations, too, who owns the case in their ledgers. Then say that, with --owner. This ledger follows to that owner, at the highest epoch that was seen; none is issued anew. If it is this agent, settle what was done meanwhile before anything new is started.'
        : 'Then let the case go on from the state that is there. It gets an epoch above the highest that was seen, so that whatever still comes from the lost ones is refused; the person owns it, and sees to what the ledger no longer knows before they return it.',
    ],
    commands: here ? [recover] : [`at the agent ${row === null ? ref.root : actsFor(row.owner)}:`, recover],
  };
}

/** A receipt says who owns it: here nobody can tell whether that is all. */
function explainReceipt(
  { witnessed, found }: Pick<Of<'case_quarantined'>['data'], 'witnessed' | 'found'>,
  self: string,
  recover: string,
): Explained {
  const { from, toAgent, epoch, handoffId, attempt } = witnessed;
  const takenBack = isTakenBack(witnessed);
  const isForced = takenBack || Number(found.epoch ?? 0) > Number(epoch);
  return {
    fields: [
      ['reason', 'receipt_contradicted'],
      ['receipt', `${handoffId}, attempt ${attempt}: ${from ?? '?'} to ${toAgent}, epoch ${epoch}`],
      [
        'found',
        found.epoch === undefined ? 'nothing' : `${found.owner ?? 'an owner'} at epoch ${found.epoch}`,
      ],
    ],
    history: [],
    safe: [
      isForced
        ? `A person took the case ${takenBack ? 'back at the other side' : 'here'} by force while an offer of it was in doubt, and ${takenBack ? 'this agent' : toAgent} had accepted that offer: both act for its owner.`
        : toAgent === self
          ? 'This agent has signed for the case, and its ledger does not know: it was put back to an earlier state, and lost what was done after that.'
          : `${toAgent} has signed for the case in a way that this ledger holds for impossible: one of the two was put back to an earlier state, or decided twice.`,
      'Every write to the case is refused, and other cases go on. If a newer state of the ledger can be had, bring that back.',
      'Otherwise ask the other side for its audit of the case, and look into the business systems for effects that this ledger does not know.',
      'Then say who owns the case by what was found. This ledger follows to that owner at that epoch; none is issued anew. If it is this agent, settle what was done meanwhile before anything new is started.',
      ...(isForced
        ? [
            'Both sides have to say the same, with --owner: first the one that took the case by force; then the other, with the epoch that came out there as --seen-epoch.',
          ]
        : []),
    ],
    commands: [recover],
  };
}

/** Whether a person of the sender took the case back, at the other side. */
function isTakenBack({ from, toAgent }: Of<'case_quarantined'>['data']['witnessed']): boolean {
  return from !== undefined && actsFor(String(from)) === actsFor(String(toAgent));
}

/** Of a case that is lost altogether nothing tells but the kinds there are: it is, where all of them are. */
function isOfSeparate(row: CaseRow | null, kinds: readonly KindDefinition[]): boolean {
  const its = kinds.filter(({ kind }) => row === null || kind === row.kind);
  return its.length > 0 && its.every(({ mode }) => mode === 'separate');
}
