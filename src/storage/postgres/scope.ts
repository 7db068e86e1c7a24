import { type AcceptanceKey, actsFor, type CaseRef, handoffIdOf } from '../../core/index.js';
import type {
  CommandOf,
  DeadFilter,
  OfferClaim,
  PendingClaim,
  RuleName,
  WorkClaim,
} from '../../ledger/index.js';
import type { PartyScope } from './incarnations.js';
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
  /** The plan of its case, and the task at the receiver of its attempt. */
  readonly candidates?: true;
  readonly offers?: OfferClaim;
  readonly items?: WorkClaim;
  readonly pending?: PendingClaim;
  readonly pushes?: PushScope;
  readonly party?: PartyScope;
  /** What it decides hangs on more than the head of the case tells. */
  readonly holds?: true;
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

const ofAgent = (agent: string): Scope => ({ tenant: '', party: { agent, always: true } });

/** A write that only the owner may make, who may have lost it without knowing. */
const byOwner = ({ ref, writer }: { readonly ref: CaseRef; readonly writer: string }): Scope => ({
  ...ofCase({ ref }),
  party: { agent: actsFor(writer) },
});

const ofDead = (dead: DeadFilter): Scope => ({ tenant: dead.tenant, pushes: { dead } });

const SCOPES: { readonly [N in RuleName]: (command: CommandOf<N>) => Scope } = {
  putKind: ({ tenant, kind }) => ({ tenant, kind: kind.kind }),
  openCase: ({ ref, kind }) => ({ ...ofCase({ ref }), kind }),
  closeCase: byOwner,
  changeOwner: ({ ref, actor }) => byOwner({ ref, writer: actor }),
  addNote: ofCase,
  intendOffer: ({ ref, writer, epoch, attempt, holder, plan }) => ({
    ...byOwner({ ref, writer }),
    ...(plan === undefined ? {} : { candidates: true }),
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
  recordRevocation: ({ key }) => ofAttempt(key),
  markInDoubt: ofAttempt,
  releaseOffer: ({ key }) => ofAttempt(key),
  closeOffer: ({ key }) => ofAttempt(key),
  settleDoubt: ({ key }) => ofAttempt(key),
  // The kind too: a case that another ledger hands in may not be known yet.
  accept: ({ ref, key, kind, toAgent }) => ({
    ...ofCase({ ref }),
    key,
    kind,
    party: { agent: toAgent, peer: key.sender },
  }),
  // Of which kind the case is nobody may know here.
  withdraw: ({ ref, key, toAgent }) => ({
    ...ofCase({ ref }),
    key,
    party: { agent: toAgent, peer: key.sender, always: true },
  }),
  reject: ({ ref, key, from }) => ({
    ...ofCase({ ref }),
    key,
    ...(from === undefined ? {} : { kind: from.kind, party: { agent: from.toAgent, peer: key.sender } }),
  }),
  recordDelivery: ({ ref, key }) => ({ ...ofCase({ ref }), key }),
  deferOffer: ({ ref, key, holder }) => ({
    ...ofCase({ ref }),
    key,
    ...(holder === undefined ? {} : { holder }),
  }),
  answerOffer: ({ ref, key, holder }) => ({
    ...ofCase({ ref }),
    key,
    ...(holder === undefined ? {} : { holder }),
  }),
  startEffect: byOwner,
  settleEffect: ofCase,
  settleWork: ({ ref, workId }) => ({ ...ofCase({ ref }), workId }),
  createTask: ofTask,
  saveTask: ofTask,
  beginIncarnation: ({ agent }) => ofAgent(agent),
  peerAnswered: ({ agent }) => ofAgent(agent),
  waivePeer: ({ agent }) => ofAgent(agent),
  hearIncarnation: ({ tenant, agent, peer }) => ({ tenant, party: { agent, peer, always: true } }),
  settleReceipt: ({ agent, transfer: { ref, key } }) => ({
    ...ofCase({ ref }),
    key,
    party: { agent, always: true },
    holds: true,
  }),
  quarantine: ofCase,
  recoverCase: ({ ref, kind, resolution }) => ({
    ...ofCase({ ref }),
    lifts: true,
    party: { agent: actsFor(resolution.by), always: true },
    ...(kind === undefined ? {} : { kind }),
  }),
  setPlan: ({ ref }) => ({ ...ofCase({ ref }), candidates: true }),
  noteTask: ({ key }) => ({ ...ofAttempt(key), candidates: true }),
  answerQuestion: ({ key }) => ({ ...ofAttempt(key), candidates: true }),
  heartbeat: ({ holder }) => ({ tenant: '', holder }),
  release: ({ holder }) => ({ tenant: '', holder }),
  claimOffers: (claim) => ({ tenant: claim.tenant, holder: claim.holder, offers: claim }),
  claimWork: (claim) => ({ tenant: claim.tenant, holder: claim.holder, items: claim }),
  claimPending: (claim) => ({ tenant: claim.tenant, holder: claim.holder, pending: claim }),
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
