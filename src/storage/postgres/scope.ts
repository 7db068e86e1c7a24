import { type AcceptanceKey, actsFor, type CaseRef, handoffIdOf } from '../../core/index.js';
import type { CommandOf, DeadFilter, OfferClaim, RuleName, WorkClaim } from '../../ledger/index.js';
import type { PushScope } from './push.js';

/** What the rule of a command may read: at most one case, one attempt, one kind, one work item and one task. */
export interface Scope {
  readonly tenant: string;
  readonly ref?: CaseRef;
  readonly key?: AcceptanceKey;
  readonly kind?: string;
  readonly workId?: string;
  readonly taskId?: string;
  /** A second case, of which only is asked whether it is quarantined. */
  readonly other?: CaseRef;
  readonly holder?: string;
  /** It ends the quarantine of its case. */
  readonly lifts?: true;
  readonly offers?: OfferClaim;
  readonly items?: WorkClaim;
  readonly pushes?: PushScope;
}

const ofCase = ({ ref }: { readonly ref: CaseRef }): Scope => ({ tenant: ref.tenant, ref });

/** An attempt's handoff id usually begins with the case id; where another case stands behind it, the load tells. */
export function ofAttempt(key: AcceptanceKey): Scope {
  const { tenant, root, handoffId } = key;
  const end = handoffId.lastIndexOf(':');
  const caseId = end > 0 ? handoffId.slice(0, end) : handoffId;
  return { tenant, ref: { tenant, root, caseId }, key };
}

interface OfTask {
  readonly tenant: string;
  readonly id: string;
  readonly push?: unknown;
}

const ofTask = ({ tenant, id, push }: OfTask): Scope => ({
  tenant,
  taskId: id,
  ...(push === undefined ? {} : { pushes: { task: id } }),
});

const ofDead = (dead: DeadFilter): Scope => ({ tenant: dead.tenant, pushes: { dead } });

const SCOPES: { readonly [N in RuleName]: (command: CommandOf<N>) => Scope } = {
  putKind: ({ tenant, kind }) => ({ tenant, kind: kind.kind }),
  openCase: ({ ref, kind }) => ({ ...ofCase({ ref }), kind }),
  closeCase: ofCase,
  changeOwner: ofCase,
  addNote: ofCase,
  intendOffer: ({ ref, writer, epoch, attempt, holder }) => ({
    ...ofCase({ ref }),
    ...(holder === undefined ? {} : { holder }),
    key: {
      tenant: ref.tenant,
      root: ref.root,
      sender: actsFor(writer),
      handoffId: handoffIdOf(ref.caseId, epoch),
      attempt,
    },
  }),
  markOffered: ofAttempt,
  voidOffer: ({ key }) => ofAttempt(key),
  recordReceipt: ({ key }) => ofAttempt(key),
  markInDoubt: ofAttempt,
  releaseOffer: ({ key }) => ofAttempt(key),
  closeOffer: ({ key }) => ofAttempt(key),
  settleDoubt: ({ key }) => ofAttempt(key),
  // The kind too: a case that another ledger hands in may not be known yet.
  accept: ({ ref, key, kind }) => ({ ...ofCase({ ref }), key, kind }),
  withdraw: ({ ref, key }) => ({ ...ofCase({ ref }), key }),
  reject: ({ ref, key }) => ({ ...ofCase({ ref }), key }),
  recordDelivery: ({ ref, key }) => ({ ...ofCase({ ref }), key }),
  startEffect: ofCase,
  settleEffect: ofCase,
  settleWork: ({ ref, workId }) => ({ ...ofCase({ ref }), workId }),
  createTask: ofTask,
  saveTask: ofTask,
  quarantine: ofCase,
  recoverCase: ({ ref, kind }) => ({
    ...ofCase({ ref }),
    lifts: true,
    ...(kind === undefined ? {} : { kind }),
  }),
  heartbeat: ({ holder }) => ({ tenant: '', holder }),
  release: ({ holder }) => ({ tenant: '', holder }),
  claimOffers: (claim) => ({ tenant: claim.tenant, holder: claim.holder, offers: claim }),
  claimWork: (claim) => ({ tenant: claim.tenant, holder: claim.holder, items: claim }),
  addPush: ({ tenant, taskId }) => ({ tenant, taskId, pushes: { task: taskId } }),
  removePush: ({ tenant, taskId }) => ({ tenant, pushes: { task: taskId } }),
  claimPushes: (due) => ({ tenant: due.tenant, holder: due.holder, pushes: { due } }),
  settleNotification: ({ tenant, pushId }) => ({ tenant, pushes: { push: pushId } }),
  retryNotifications: ofDead,
  pruneNotifications: ofDead,
  addWatch: ({ tenant }) => ({ tenant }),
  removeWatch: ({ tenant }) => ({ tenant }),
  pruneWatches: ({ tenant }) => ({ tenant }),
  hear: () => ({ tenant: '' }),
};

export function scopeOf<N extends RuleName>(name: N, command: CommandOf<N>): Scope {
  const scope = SCOPES[name] as (command: CommandOf<N>) => Scope;
  return scope(command);
}
