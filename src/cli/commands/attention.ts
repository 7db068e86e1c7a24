import type { Command } from 'commander';
import { formatMoney } from '../../core/index.js';
import type { AttentionItem } from '../../ledger/index.js';
import { printTable } from '../print.js';
import { type CommonOptions, leaf, type Session } from '../run.js';

export function addAttention(program: Command, session: Session): void {
  leaf(program, 'attention', 'list what only a person can settle', ['attention --dir triage']).action(
    (options: CommonOptions) =>
      session.withAgent(options, async (holdfast) => {
        const items = await holdfast.ledger.listAttention(holdfast.config.tenant);
        const text =
          items.length === 0
            ? 'Nothing waits for a person.'
            : printTable(['CASE', 'WHAT', 'SINCE', 'PARTICULARS', 'ROOT'], items.map(rowOf));
        return { json: { items }, text };
      }),
  );
}

function rowOf(item: AttentionItem): string[] {
  const { ref, since } = item;
  if (item.what === 'case_quarantined') {
    const { reason, witnessed, found } = item.data;
    const particulars = `${reason}: witnessed ${placeOf(witnessed)}, found ${placeOf(found)}`;
    return [ref.caseId, 'case quarantined', since, particulars, ref.root];
  }
  const { key, operation, amount } = item.data;
  const particulars = [operation, key, amount === null ? '' : formatMoney(amount)].filter(Boolean).join(', ');
  return [ref.caseId, 'effect unknown', since, particulars, ref.root];
}

/** What a table says of where a case was seen to be, or is. */
export function placeOf(at: Readonly<Record<string, string | number>>): string {
  const said = [
    at.epoch === undefined ? '' : `epoch ${at.epoch}`,
    at.seq === undefined ? '' : `entry ${at.seq} (${String(at.hash).slice(0, 12)})`,
  ].filter(Boolean);
  return said.length === 0 ? 'nothing' : said.join(', ');
}
