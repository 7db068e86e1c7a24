import { AMOUNT_PATTERN, CURRENCY_PATTERN, HoldfastError, toUtc } from '../../core/index.js';
import type { SettleEffectCommand, StartEffectCommand } from '../commands.js';
import type { AuditFact, EffectRow } from '../model.js';
import { atEpoch, loggableData, loggableId, refuse, storable } from './facts.js';
import { fence, isRefused } from './fence.js';
import { peersOf, waivedIn } from './incarnation.js';
import { checkPolicy } from './policy.js';
import { resolutionOf } from './resolution.js';
import type { LedgerView, Rule, Ruling, StoredEffect } from './ruling.js';

/*
 * An effect is committed as `started` before the outside call and settled after it.
 *   (none)  -> started                  policy and caps allow it, at the owner's epoch
 *   started -> done | failed | unknown  settled by the owner of the case, whoever started it
 *   started -> unknown                  by itself, once its limit has passed: nothing needs to be written for it
 *   unknown -> done | failed            by the owner, from proof
 *   failed  -> started                  proved not to have happened: the only state from which the key starts again
 *   done                                final
 * While one is `started`, no offer is created and no acceptance commits. While an offer is open in a `separate` kind, none starts.
 * A receiver with a ledger of its own inherits every key (inherit.ts).
 */

/** Keys and operations stand in the audit as they are, so they must be names and not prose. */
const NAME = /^[\x21-\x7e]{1,200}$/;

/** The effect as it counts now: past its limit a started one is unknown. */
export function asOf(effect: StoredEffect, now: Date): EffectRow {
  const overdue = effect.state === 'started' && Date.parse(effect.limitAt) <= now.getTime();
  return overdue ? { ...effect, state: 'unknown' } : effect;
}

export function isSettled(effect: EffectRow): boolean {
  return effect.state === 'done' || effect.state === 'failed';
}

/** Whether an effect on the case may be happening outside at this very moment. */
export function inFlight(view: LedgerView, effects: readonly StoredEffect[]): EffectRow | undefined {
  return effects.map((effect) => asOf(effect, view.now)).find((effect) => effect.state === 'started');
}

export const startEffect: Rule<StartEffectCommand, EffectRow> = (view, command) => {
  const write = 'start_effect';
  const { ref, writer, epoch, key, operation, amount } = command;
  const problem = problemOf(command);
  if (problem !== null) throw new HoldfastError('usage', problem);
  const standing = fence(view, write, command);
  if (isRefused(standing)) return standing;
  const kind = view.kind(ref.tenant, standing.case.kind);
  // The receiver may have accepted, and this ledger would not know.
  if (kind?.mode === 'separate' && view.openOffer(ref) !== null) {
    return refuse({ write, ref, writer, code: 'effects_frozen', data: { key } });
  }
  const peers = peersOf(view, kind, writer);
  if (peers.missing !== null) {
    return refuse({ write, ref, writer, code: 'peers_unanswered', data: { key, ...peers.missing } });
  }
  const effects = view.effects(ref);
  const before = effects.find((effect) => effect.key === key);
  if (before !== undefined && before.state !== 'failed') {
    const state = asOf(before, view.now).state;
    return refuse({ write, ref, writer, code: 'effect_duplicate', data: { key, state } });
  }
  if (kind === null) return refuse({ write, ref, writer, code: 'kind_unknown' });
  const refused = checkPolicy(kind, standing.case, effects, command);
  if (refused !== null) return refuse({ write, ref, writer, ...refused });
  const row: StoredEffect = {
    ref,
    key,
    operation,
    amount,
    epoch,
    owner: writer,
    state: 'started',
    startedAt: toUtc(view.now),
    limitAt: toUtc(new Date(view.now.getTime() + kind.limits.effectLimitMs)),
    settledAt: null,
    outcome: null,
    startedSeq: view.nextSeq(ref),
  };
  return {
    changes: [{ do: 'start_effect', guard: standing.guard, again: before !== undefined, row }],
    audit: {
      ref,
      facts: [
        {
          type: 'effect_started',
          actor: writer,
          ...atEpoch(epoch),
          rule: 'H5',
          data: { key, operation, amount, limitAt: row.limitAt, ...waivedIn(peers) },
        },
      ],
    },
    result: asOf(row, view.now),
  };
};

export const settleEffect: Rule<SettleEffectCommand, EffectRow> = (view, command) => {
  const write = 'settle_effect';
  const { ref, writer, epoch, key, state } = command;
  const outcome = command.outcome === null ? null : storable(command.outcome);
  const said = command.resolution === undefined ? null : resolutionOf(command.resolution, writer);
  if (said !== null && state === 'unknown')
    throw new HoldfastError('usage', 'A person settles as done or failed.');
  const effect = view.effects(ref).find((row) => row.key === key);
  const standing = fence(view, write, command);
  if (isRefused(standing)) return asReport(standing, effect, command);
  if (effect === undefined) return refuse({ write, ref, writer, code: 'effect_unknown', data: { key } });
  // A key that was started again has left the caller's start behind: what is known of that says nothing about this one.
  if (command.startedSeq !== undefined && command.startedSeq !== effect.startedSeq) {
    return refuse({ write, ref, writer, code: 'effect_settled', data: { key, state: effect.state } });
  }
  if (effect.state === state && effect.outcome === outcome) {
    return { changes: [], audit: null, result: asOf(effect, view.now) };
  }
  if (isSettled(effect) || effect.state === state) {
    return refuse({ write, ref, writer, code: 'effect_settled', data: { key, state: effect.state } });
  }
  // Within its limit whoever started it is still about to say.
  if (said !== null && asOf(effect, view.now).state === 'started') {
    return refuse({ write, ref, writer, code: 'effect_in_flight', data: { key } });
  }
  const row: StoredEffect = { ...effect, state, outcome, settledAt: toUtc(view.now) };
  return {
    changes: [{ do: 'settle_effect', guard: standing.guard, row }],
    audit: {
      ref,
      facts: [
        {
          type: 'effect_settled',
          actor: writer,
          ...atEpoch(epoch),
          rule: 'H5',
          data: { key, state, outcome: outcome === null ? null : loggableId(outcome), ...said },
        },
      ],
    },
    result: asOf(row, view.now),
  };
};

/** What a former owner says about an effect it started is worth keeping, but it is the owner who settles. */
function asReport(
  refused: Ruling<never>,
  effect: StoredEffect | undefined,
  command: SettleEffectCommand,
): Ruling<never> {
  if (!('refusal' in refused) || refused.refusal.code !== 'epoch_stale') return refused;
  if (effect === undefined || effect.owner !== command.writer) return refused;
  const { key, state, outcome } = command;
  const report: AuditFact = {
    type: 'effect_reported',
    actor: command.writer,
    rule: 'epoch_stale',
    data: {
      key,
      state,
      outcome: outcome === null ? null : loggableId(outcome),
      ...loggableData(refused.refusal.data),
    },
  };
  return { ...refused, audit: { ref: command.ref, facts: [report] } };
}

/** Why this cannot be an effect; `null` where it can. */
export function problemOf(effect: Pick<EffectRow, 'key' | 'operation' | 'amount'>): string | null {
  const { key, operation, amount } = effect;
  if (!NAME.test(key) || !NAME.test(operation)) {
    return 'An effect key or operation is 1 to 200 visible ASCII characters.';
  }
  const isMoney =
    amount === null || (AMOUNT_PATTERN.test(amount.amount) && CURRENCY_PATTERN.test(amount.currency));
  return isMoney ? null : 'An amount is a decimal string with an ISO 4217 currency.';
}
