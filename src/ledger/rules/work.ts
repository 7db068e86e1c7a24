import { isSameCase, sha256Hex, toUtc } from '../../core/index.js';
import type { SettleWorkCommand } from '../commands.js';
import type { WorkItem } from '../model.js';
import { atEpoch, refuse } from './facts.js';
import { fence, isRefused } from './fence.js';
import type { Rule } from './ruling.js';

/*
 * A work item is what one acceptance gives the receiver.
 *   (none) -> open            in the acceptance transaction, exactly one (decisions.ts)
 *   open   -> done | failed   by the owner of the case
 *   open   -> superseded      when the case moves on to another owner
 * All but `open` are final.
 */

export const settleWork: Rule<SettleWorkCommand, WorkItem> = (view, command) => {
  const write = 'settle_work';
  const standing = fence(view, write, command);
  if (isRefused(standing)) return standing;
  const { ref, writer, epoch, workId, state, result } = command;
  const item = view.work(ref.tenant, workId);
  if (item === null || !isSameCase(item.ref, ref)) {
    return refuse({ write, ref, writer, code: 'work_unknown', data: { workId } });
  }
  if (item.state === state && item.result === result) return { changes: [], audit: null, result: item };
  if (item.state !== 'open') {
    return refuse({ write, ref, writer, code: 'work_settled', data: { workId, state: item.state } });
  }
  const row: WorkItem = { ...item, state, result, settledAt: toUtc(view.now) };
  return {
    changes: [{ do: 'settle_work', guard: standing.guard, row }],
    audit: {
      ref,
      facts: [
        {
          type: 'work_settled',
          actor: writer,
          ...atEpoch(epoch),
          rule: 'H4',
          ...(result === null ? {} : { digest: sha256Hex(result) }),
          data: { workId, state },
        },
      ],
    },
    result: row,
  };
};
