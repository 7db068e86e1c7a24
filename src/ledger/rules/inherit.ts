import { HoldfastError, toUtc } from '../../core/index.js';
import type { InheritedEffect } from '../commands.js';
import type { AuditFact } from '../model.js';
import { asOf, problemOf } from './effects.js';
import type { Change, Guard, LedgerView, StoredEffect } from './ruling.js';

/*
 * What a receiver with a ledger of its own takes over of the effects that the envelope lists, so that a key is used once over all owners.
 *   not known here        -> as listed; `started` counts as unknown: only the former owner could have settled it in time
 *   unknown here          -> done | failed, where the former owner has settled it
 *   failed here           -> started again, and what became of that, where the former owner started it again
 *   done here             -> stays
 */

export interface Inheritance {
  readonly changes: readonly Change[];
  readonly facts: readonly AuditFact[];
}

/** `guard` is of the case as the new owner has it, `before` of the former owner; `firstSeq`: place of the first of the facts in the audit. */
export function inherit(
  view: LedgerView,
  effects: readonly InheritedEffect[],
  guard: Guard,
  before: Guard,
  firstSeq: number,
): Inheritance {
  const known = new Map(view.effects(guard.ref).map((effect) => [effect.key, effect]));
  const changes: Change[] = [];
  const facts: AuditFact[] = [];
  for (const effect of effects) {
    const problem = problemOf(effect);
    if (problem !== null) throw new HoldfastError('schema_invalid', problem);
    const step = inherited(view, effect, known.get(effect.key), guard, before, firstSeq + facts.length);
    if (step === null) continue;
    changes.push(...step.changes);
    known.set(effect.key, step.row);
    facts.push(factOf(step.row, before));
  }
  return { changes, facts };
}

function inherited(
  view: LedgerView,
  { key, operation, amount, state: listed }: InheritedEffect,
  here: StoredEffect | undefined,
  guard: Guard,
  before: Guard,
  startedSeq: number,
): { readonly row: StoredEffect; readonly changes: readonly Change[] } | null {
  const at = toUtc(view.now);
  const state = listed === 'started' ? 'unknown' : listed;
  const { ref } = guard;
  const { owner, epoch } = before;
  const started = { ref, key, operation, amount, epoch, owner, startedAt: at, limitAt: at, startedSeq };
  const row: StoredEffect = { ...started, state, settledAt: at, outcome: null };
  if (here === undefined) return { row, changes: [{ do: 'start_effect', guard, again: false, row }] };
  if (here.state === 'done' || asOf(here, view.now).state === state) return null;
  if (here.state === 'failed') {
    const again: StoredEffect = { ...started, state: 'started', settledAt: null, outcome: null };
    return {
      row,
      changes: [
        { do: 'start_effect', guard, again: true, row: again },
        { do: 'settle_effect', guard, row },
      ],
    };
  }
  const settled: StoredEffect = { ...here, state, settledAt: at };
  return { row: settled, changes: [{ do: 'settle_effect', guard, row: settled }] };
}

function factOf({ key, operation, amount, state, owner, epoch }: StoredEffect, before: Guard): AuditFact {
  return {
    type: 'effect_inherited',
    actor: before.owner,
    epochBefore: before.epoch,
    epochAfter: before.epoch + 1,
    rule: 'H5',
    data: { key, operation, amount, state, owner, epoch },
  };
}
