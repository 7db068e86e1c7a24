import { asOf, type LedgerStore, offerRow, rules } from '../ledger/index.js';
import type { Engine } from './engine.js';

/** The port on any engine: writes are the ledger's rules, reads are queries, and nothing is decided here. */
export function createStore(engine: Engine): LedgerStore {
  const { read, write } = engine;
  return {
    incarnation: () => read((ledger) => ledger.incarnation()),

    putKind: (tenant, kind, options) =>
      write((view) => rules.putKind(view, { tenant, kind, replace: options?.replace ?? false })),
    getKind: (tenant, kind) => read((ledger) => ledger.kind(tenant, kind)),
    listKinds: (tenant) => read((ledger) => ledger.kinds(tenant)),

    openCase: (command) => write((view) => rules.openCase(view, command)),
    closeCase: (command) => write((view) => rules.closeCase(view, command)),
    getCase: (ref) => read((ledger) => ledger.case(ref)),
    listCases: (tenant, filter) => read((ledger) => ledger.cases(tenant, filter ?? {})),
    findCases: (tenant, caseId) => read((ledger) => ledger.casesById(tenant, caseId)),
    snapshot: (ref) =>
      read((ledger) => ({
        case: ledger.case(ref),
        offers: ledger.offersOf(ref),
        decisions: ledger.decisionsOf(ref),
        work: ledger.workOf(ref),
        effects: ledger.effects(ref).map((effect) => asOf(effect, ledger.now)),
        notes: ledger.notes(ref),
        audit: ledger.audit(ref),
      })),

    intendOffer: (command) => write((view) => rules.intendOffer(view, command)),
    markOffered: (key) => write((view) => rules.markOffered(view, key)),
    getOffer: (key) =>
      read((ledger) => {
        const offer = ledger.offer(key);
        return offer === null ? null : offerRow(offer);
      }),
    listOffers: (tenant, filter) => read((ledger) => ledger.offers(tenant, filter)),
    lastAttempt: (key) => read((ledger) => ledger.lastAttempt(key)),
    voidOffer: (command) => write((view) => rules.voidOffer(view, command)),
    recordReceipt: (command) => write((view) => rules.recordReceipt(view, command)),

    findDecision: (key) => read((ledger) => ledger.decision(key)),
    accept: (command) => write((view) => rules.accept(view, command)),
    reject: (command) => write((view) => rules.reject(view, command)),
    recordDelivery: (key, ref, principal, digest, type) =>
      write((view) => rules.recordDelivery(view, { key, ref, principal, digest, type })),

    listWork: (tenant, filter) => read((ledger) => ledger.workItems(tenant, filter)),
    getWork: (tenant, id) => read((ledger) => ledger.work(tenant, id)),
    settleWork: (command) => write((view) => rules.settleWork(view, command)),

    addNote: (command) => write((view) => rules.addNote(view, command)),
    listNotes: (ref) => read((ledger) => ledger.notes(ref)),

    startEffect: (command) => write((view) => rules.startEffect(view, command)),
    settleEffect: (command) => write((view) => rules.settleEffect(view, command)),
    listEffects: (ref) => read((ledger) => ledger.effects(ref).map((effect) => asOf(effect, ledger.now))),

    createTask: (task) => write((view) => rules.createTask(view, task)),
    saveTask: (task) => write((view) => rules.saveTask(view, task)),
    getTask: (tenant, peer, id) =>
      read((ledger) => {
        const task = ledger.task(tenant, id);
        return task?.peer === peer ? task : null;
      }),
    listTasks: (filter) => read((ledger) => ledger.tasks(filter)),

    readAudit: (ref) => read((ledger) => ledger.audit(ref)),
    listAuditedCases: (tenant) => read((ledger) => ledger.auditedCases(tenant)),

    close: () => engine.close(),
  };
}
