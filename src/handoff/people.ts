import {
  type AcceptanceKey,
  actsFor,
  type CaseRef,
  ERROR_TABLE,
  HoldfastError,
  isHoldfastError,
  isSameCase,
  normalizeAgentUrl,
  parsePerson,
  personOwner,
} from '../core/index.js';
import { findPersonalData } from '../envelope/index.js';
import type {
  AwaitedPeer,
  CaseRow,
  ChangeOwnerCommand,
  EffectRow,
  LedgerStore,
  OfferRow,
  Quarantine,
  Resolution,
  Transfer,
} from '../ledger/index.js';
import { type AcrossOptions, changeAcross } from './across.js';
import { rejectionPart } from './answers.js';
import { checkArguments } from './arguments.js';
import type {
  CaseByPerson,
  EscalateInput,
  ReassignInput,
  RecoverCaseInput,
  ResolutionInput,
  ResolveEffectInput,
  SettleDoubtInput,
  TakeCaseInput,
  WaivePeerInput,
} from './model.js';

/** What persons of this node do with cases. Who they are says its operator, at the command; the node signs for them. */
export interface People {
  /** The owner that a person of this node is; this agent where none is named. @throws usage */
  writerOf(person: string | undefined): string;
  /** @throws epoch_stale, not_owner, effect_in_flight, case_closed, personal_data; withdraw_needed, offer_decided, peers_unanswered */
  take(input: TakeCaseInput): Promise<CaseRow>;
  /** @throws as `take` */
  reassign(input: ReassignInput): Promise<CaseRow>;
  /** @throws as `take` */
  giveBack(input: CaseByPerson): Promise<CaseRow>;
  /** @throws as `take`; offer_unknown, and offer_decided where the offer was accepted */
  escalate(input: EscalateInput): Promise<CaseRow>;
  /** @throws usage where it is not quarantined or the epoch that was seen is not known; not_owner, kind_unknown, effect_in_flight, personal_data */
  recover(input: RecoverCaseInput): Promise<CaseRow>;
  /** @throws usage where nothing waits for the peer; personal_data */
  waive(input: WaivePeerInput): Promise<AwaitedPeer>;
  /** @throws effect_unknown, effect_settled, effect_in_flight, not_owner, epoch_stale, personal_data */
  resolveEffect(input: ResolveEffectInput): Promise<EffectRow>;
  /** @throws offer_unknown, not_owner, usage, personal_data */
  settleDoubt(input: SettleDoubtInput): Promise<OfferRow>;
}

export interface PeopleOptions extends AcrossOptions {
  readonly ledger: LedgerStore;
  /** What a receipt proves of the case. @throws where it proves nothing, or the key of its issuer cannot be had now */
  readTransfer(receipt: string, ref: CaseRef): Promise<Transfer>;
}

/** How often the case is looked at anew, since an offer was made or closed meanwhile. */
const LOOKS = 5;

export function createPeople(options: PeopleOptions): People {
  const { ledger } = options;
  const self = options.identity.url;
  const owner = (person: string) => personOwner(person, self);

  /** The offer that is open now is voided with the change; where another one is by then, that one. */
  async function voiding(
    ref: CaseRef,
    write: (voids: ChangeOwnerCommand['voids']) => Promise<CaseRow>,
  ): Promise<CaseRow> {
    for (let looks = 1; ; looks++) {
      try {
        return await write(await openOfferOf(ref));
      } catch (error) {
        if (looks === LOOKS || !isHoldfastError(error) || error.code !== 'offer_open') throw error;
      }
    }
  }

  async function change(command: Omit<ChangeOwnerCommand, 'voids' | 'proof'>): Promise<CaseRow> {
    checkReason(command.reason);
    const row = await ledger.getCase(command.ref);
    const kind = row && (await ledger.getKind(command.ref.tenant, row.kind));
    if (row !== null && kind?.mode === 'separate') return changeAcross(row, command, options);
    return voiding(command.ref, (voids) => ledger.changeOwner({ ...command, voids }));
  }

  /** A witness keeps the receipt alone. What it proves goes with the recovery, so that the case can be handed over again. */
  async function proved(quarantine: Quarantine): Promise<Quarantine> {
    const { ref, witnessed } = quarantine;
    const { receipt, receiptKey } = witnessed;
    if (typeof receipt !== 'string' || receiptKey !== undefined) return quarantine;
    const transfer = await options.readTransfer(receipt, ref).catch(() => null);
    if (transfer === null || transfer.newEpoch !== witnessed.epoch) return quarantine;
    const { key, toAgent, digest, receiptKey: by } = transfer;
    const { sender: from, handoffId, attempt } = key;
    const said = { from, toAgent, handoffId, attempt, digest, receiptKey: by };
    return { ...quarantine, witnessed: { ...witnessed, ...said } };
  }

  async function openOfferOf(ref: CaseRef): Promise<ChangeOwnerCommand['voids']> {
    const offers = await ledger.listOffers(ref.tenant, { caseId: ref.caseId, open: true });
    const open = offers.find((offer) => offer.ref.root === ref.root);
    return open === undefined ? null : { key: open.key, answer: tombstone(open.key, ref) };
  }

  function resolutionOf({ person, reason, minutes, records }: ResolutionInput): Resolution {
    const by = owner(person);
    checkReason(reason);
    return {
      by,
      reason,
      ...(minutes === undefined ? {} : { minutes }),
      ...(records === undefined ? {} : { records }),
    };
  }

  /** An escalation is at the epoch of its offer, which nobody has named: a stale one says that the case went on since. */
  async function movedOn(error: unknown, { ref, epoch }: OfferRow): Promise<unknown> {
    if (!isHoldfastError(error) || error.code !== 'epoch_stale') return error;
    const row = await ledger.getCase(ref);
    if (row === null) return error;
    return new HoldfastError(
      'epoch_stale',
      `Too late: ${row.owner} owns ${ref.caseId} now, at epoch ${row.epoch}; the offer was made at epoch ${epoch}.`,
      { data: { presented: epoch, current: row.epoch, owner: row.owner }, cause: error },
    );
  }

  /** Who writes in the case's name here: its owner, where that is this agent or the person. */
  async function ownerFor(ref: CaseRef, person: string): Promise<CaseRow> {
    const row = await ledger.getCase(ref);
    if (row === null)
      throw new HoldfastError('case_unknown', `There is no case ${ref.caseId} in this ledger.`);
    const { owner: current, epoch } = row;
    if (actsFor(current) === self && (parsePerson(current) === null || current === person)) return row;
    throw new HoldfastError(
      'not_owner',
      `The case is owned by ${current}, at epoch ${epoch}: only the owner settles its effects.`,
      { data: { owner: current, current: epoch } },
    );
  }

  return {
    writerOf: (person) => (person === undefined ? self : owner(person)),
    take: async (input) => {
      checkArguments('takeCase', input);
      const { ref, epoch, person, reason, force = false } = input;
      const to = owner(person);
      return change({ ref, epoch, change: 'takeover', actor: to, to, reason, force });
    },
    reassign: async (input) => {
      checkArguments('reassignCase', input);
      const { ref, epoch, person, to, reason } = input;
      const command = { ref, epoch, actor: owner(person), to: owner(to), reason };
      return change({ ...command, change: 'reassignment' });
    },
    giveBack: async (input) => {
      checkArguments('returnCase', input);
      const { ref, epoch, person, reason } = input;
      return change({ ref, epoch, change: 'return', actor: owner(person), to: self, reason });
    },
    escalate: async (input) => {
      checkArguments('escalate', input);
      const { key, person, reason } = input;
      const to = owner(person);
      const offer = await ledger.getOffer(key);
      const name = `${key.handoffId}, attempt ${key.attempt}`;
      if (offer === null) throw new HoldfastError('offer_unknown', `There is no offer ${name}.`);
      if (offer.state === 'accepted') {
        const message = `Too late: ${offer.toAgent} accepted it (${name}).`;
        throw new HoldfastError('offer_decided', message, { data: { state: offer.state } });
      }
      const { ref, epoch } = offer;
      try {
        return await change({ ref, epoch, change: 'escalation', actor: self, to, reason });
      } catch (error) {
        throw await movedOn(error, offer);
      }
    },
    recover: async (input) => {
      checkArguments('recoverCase', input);
      const { ref, seenEpoch, kind } = input;
      const owned = input.owner === undefined ? {} : { owner: ownerOf(input.owner) };
      const resolution = resolutionOf(input);
      const quarantines = await ledger.listQuarantined(ref.tenant);
      const quarantine = quarantines.find((one) => isSameCase(one.ref, ref));
      if (!quarantine) throw new HoldfastError('usage', `The case ${ref.caseId} is not quarantined.`);
      const witnessed = Number(quarantine.witnessed.epoch ?? 0);
      const above = Math.max(witnessed, seenEpoch ?? 0);
      if (above === 0) {
        const message = `At which epoch ${ref.caseId} was seen is not in its quarantine: say the highest that anybody has seen.`;
        throw new HoldfastError('usage', message);
      }
      const row = await ledger.getCase(ref);
      const mode = (await ledger.getKind(ref.tenant, row?.kind ?? kind ?? ''))?.mode;
      const found = mode === 'separate' ? await proved(quarantine) : quarantine;
      const named = kind === undefined ? {} : { kind };
      const command = {
        ref,
        resolution,
        epoch: row?.epoch ?? null,
        above,
        quarantine: found,
        ...named,
        ...owned,
      };
      return voiding(ref, (voids) => ledger.recoverCase({ ...command, voids }));
    },
    waive: async (input) => {
      checkArguments('waivePeer', input);
      const { peer, person, reason } = input;
      checkReason(reason);
      const resolution = { by: owner(person), reason };
      return ledger.waivePeer({ agent: self, peer: normalizeAgentUrl(peer), resolution });
    },
    resolveEffect: async (input) => {
      checkArguments('resolveEffect', input);
      const { ref, key, state, outcome } = input;
      const resolution = resolutionOf(input);
      const { owner: writer, epoch } = await ownerFor(ref, resolution.by);
      const effect = (await ledger.listEffects(ref)).find((row) => row.key === key);
      if (!effect) throw new HoldfastError('effect_unknown', `There is no effect ${key} on ${ref.caseId}.`);
      return ledger.settleEffect({
        ...{ ref, writer, epoch, key, state },
        startedSeq: effect.startedSeq,
        outcome: outcome ?? null,
        resolution,
      });
    },
    settleDoubt: async (input) => {
      checkArguments('settleDoubt', input);
      const { key, ref } = input;
      return ledger.settleDoubt({ key, resolution: resolutionOf(input), answer: tombstone(key, ref) });
    },
  };
}

/** An agent, or a person of one. @throws usage */
function ownerOf(named: string): string {
  const person = parsePerson(named);
  return person === null ? normalizeAgentUrl(named) : personOwner(person.id, normalizeAgentUrl(person.node));
}

function tombstone(key: AcceptanceKey, ref: CaseRef): string {
  const reason = ERROR_TABLE.withdrawn.meaning;
  return JSON.stringify(rejectionPart({ code: 'withdrawn', reason }, { key, ref }, true));
}

/** It stands in the audit for as long as that is kept. @throws personal_data */
export function checkReason(reason: string): void {
  const problems = findPersonalData(reason);
  if (problems.length === 0) return;
  const message =
    'A reason stands in the audit, which keeps no personal data, and this one seems to hold some.';
  throw new HoldfastError('personal_data', message, {
    fields: problems.map((problem) => ({ path: 'reason', problem })),
  });
}
