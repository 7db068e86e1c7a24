import { type LedgerStore, offerRow } from '../ledger/index.js';
import { type Engine, placeOf } from './engine.js';

/** The port on any engine: writes are the ledger's rules, reads are questions, and nothing is decided here. */
export function createStore({ read, write, close }: Engine): LedgerStore {
  return {
    incarnation: () => read('incarnation'),

    putKind: (tenant, kind, options) =>
      write('putKind', { tenant, kind, replace: options?.replace ?? false }),
    getKind: (tenant, kind) => read('kind', tenant, kind),
    listKinds: (tenant) => read('kinds', tenant),

    openCase: (command) => write('openCase', command),
    closeCase: (command) => write('closeCase', command),
    getCase: (ref) => read('case', ref),
    listCases: (tenant, filter) => read('cases', tenant, filter ?? {}),
    findCases: (tenant, caseId) => read('casesById', tenant, caseId),
    snapshot: (ref) => read('snapshot', ref),
    changeOwner: (command) => write('changeOwner', command),

    intendOffer: (command) => write('intendOffer', command),
    markOffered: (key) => write('markOffered', key),
    markInDoubt: (key) => write('markInDoubt', key),
    async getOffer(key) {
      const offer = await read('offer', key);
      return offer === null ? null : offerRow(offer);
    },
    listOffers: (tenant, filter) => read('offers', tenant, filter),
    lastAttempt: (key) => read('lastAttempt', key),
    voidOffer: (command) => write('voidOffer', command),
    recordReceipt: (command) => write('recordReceipt', command),
    recordRevocation: (command) => write('recordRevocation', command),
    releaseOffer: (transfer) => write('releaseOffer', transfer),
    closeOffer: (command) => write('closeOffer', command),
    settleDoubt: (command) => write('settleDoubt', command),
    listTransfers: (ref) => read('transfers', ref),

    getPlan: (ref) => read('plan', ref),
    listPlans: (tenant, sender, limit) => read('plans', tenant, sender, limit),
    setPlan: (command) => write('setPlan', command),
    noteTask: (command) => write('noteTask', command),
    answerQuestion: (command) => write('answerQuestion', command),
    getSentTask: (key) => read('sentTask', key),
    findSentTasks: (tenant, sender, taskId) => read('sentTasksBy', tenant, sender, taskId),

    findDecision: (key) => read('decision', key),
    listDecisions: (ref, sender, limit) => read('decisionsBy', ref, sender, limit),
    offerStanding: (key, ref, kind) => read('offerStanding', key, ref, kind),
    accept: (command) => write('accept', command),
    reject: (command) => write('reject', command),
    withdraw: (command) => write('withdraw', command),
    deferOffer: (command) => write('deferOffer', command),
    answerOffer: (command) => write('answerOffer', command),
    getPending: (key) => read('pending', key),
    findPending: (tenant, taskId) => read('pendingOf', tenant, taskId),
    listPending: (tenant, filter) => read('pendings', tenant, filter),
    recordDelivery: (key, ref, principal, digest, type) =>
      write('recordDelivery', { key, ref, principal, digest, type }),

    listWork: (tenant, filter) => read('workItems', tenant, filter),
    getWork: (tenant, id) => read('work', tenant, id),
    settleWork: (command) => write('settleWork', command),

    addNote: (command) => write('addNote', command),
    listNotes: (ref) => read('notes', ref),

    startEffect: (command) => write('startEffect', command),
    settleEffect: (command) => write('settleEffect', command),
    listEffects: (ref) => read('currentEffects', ref),

    createTask: (task) => write('createTask', task),
    saveTask: (task) => write('saveTask', task),
    async getTask(tenant, peer, id) {
      const task = await read('task', tenant, id);
      return task?.peer === peer ? task : null;
    },
    listTasks: (filter) => read('tasks', filter),

    readAudit: (ref) => read('audit', ref),
    listAuditedCases: (tenant) => read('auditedCases', tenant),

    auditHead: (ref) => read('auditHead', ref),
    auditHash: (ref, seq) => read('auditHash', ref, seq),

    heartbeat: (holder, leaseMs) => write('heartbeat', { holder, leaseMs }),
    isAlive: (holder) => read('alive', holder),
    claimOffers: (claim) => write('claimOffers', claim),
    claimWork: (claim) => write('claimWork', claim),
    claimPending: (claim) => write('claimPending', claim),
    release: (holder, claimed) => write('release', { holder, ...(claimed === undefined ? {} : { claimed }) }),

    addPush: (command) => write('addPush', command),
    listPushes: async (tenant, taskId) => [...(await read('pushes', tenant, taskId))],
    removePush: (command) => write('removePush', command),
    claimPushes: (claim) => write('claimPushes', claim),
    settleNotification: (command) => write('settleNotification', command),
    listNotifications: (tenant, filter) => read('notifications', tenant, filter),
    getNotification: (tenant, pushId, seq) => read('notification', tenant, pushId, seq),
    countNotifications: (tenant) => read('notificationCounts', tenant),
    retryNotifications: (filter) => write('retryNotifications', filter),
    pruneNotifications: (filter) => write('pruneNotifications', filter),

    addWatch: (command) => write('addWatch', command),
    getWatch: (watchId) => read('watch', watchId),
    removeWatch: (tenant, watchId) => write('removeWatch', { tenant, watchId }),
    pruneWatches: (tenant, agent) => write('pruneWatches', { tenant, agent }),
    hear: (watchId, notificationId) => write('hear', { watchId, notificationId }),
    isHeard: (watchId, notificationId) => read('heard', watchId, notificationId),

    beginIncarnation: (command) => write('beginIncarnation', command),
    getIncarnation: (agent) => read('incarnationOf', agent),
    listAwaited: async (agent) => [...(await read('awaited', agent))],
    listLeases: async (agent) => [...(await read('leasesOf', agent))],
    peerAnswered: (command) => write('peerAnswered', command),
    waivePeer: (command) => write('waivePeer', command),
    hearIncarnation: (command) => write('hearIncarnation', command),
    async listReceipts(agent, { after, ...page }) {
      return read('receipts', agent, { ...page, after: after === null ? null : placeOf(after) });
    },
    settleReceipt: (command) => write('settleReceipt', command),

    quarantine: (row) => write('quarantine', row),
    recoverCase: (command) => write('recoverCase', command),
    listQuarantined: (tenant) => read('quarantines', tenant),
    listAttention: (tenant, limit) => read('attention', tenant, limit),

    close,
  };
}
