import { problemsOf } from '../../../src/audit/index.js';
import { type AcceptanceKey, actsFor, parsePerson } from '../../../src/core/index.js';
import type { AuditEntry, CaseSnapshot, OfferRow } from '../../../src/ledger/index.js';
import { checkDecisions, checkEpochs, checkProofs } from '../../ledger/separate-checks.js';
import type { Act } from './acts.js';

/** One ledger's view of the case, and the agent it belongs to. */
export interface Side {
  readonly agent: string;
  readonly seen: CaseSnapshot;
}

/**
 * One ledger, then the other, then the first again. No instant is common to two ledgers, so each objection rests on what cannot have been
 * otherwise in between:
 * - a decision and a change of owner stay for ever: what the first knows of the second's, a later look at the second has to show;
 * - an agent that can act loses that only by an offer or a change of owner, and both stay in its ledger. If it could act at both looks, and
 *   neither has come in between, it could at every instant between them, so also when the other ledger was looked at.
 */
export interface Look {
  readonly first: Side;
  readonly other: Side;
  readonly again: CaseSnapshot;
  /** Of whom takes no case, where it was offered this one; looked at last. */
  readonly decliner?: Side;
}

/** Whether this agent's ledger would let it cause an effect. */
function canAct({ agent, seen }: Side): boolean {
  return seen.case?.status === 'open' && seen.case.owner === agent && openOffer(seen) === undefined;
}

/** `earlier`: what was seen of the same ledgers before, by agent. */
export function objectionsTo(look: Look, earlier: ReadonlyMap<string, CaseSnapshot>): string[] {
  const { first, other, again, decliner } = look;
  const looked = [first, other, ...(decliner ? [decliner] : [])];
  const refusals = decliner ? [decliner.seen] : [];
  const now = looked.map(({ seen }) => seen);
  const before = looked.map(({ agent }) => earlier.get(agent) ?? NOTHING);
  const urls = looked.map(({ agent }) => agent);
  return [
    ...twoAct(look),
    ...ownerUnaware(first, other.seen),
    ...ownerUnaware(other, again),
    ...[first.seen, other.seen, again].flatMap(actsWhileOut),
    ...thrown(() => checkEpochs(now, before)),
    ...thrown(() => checkDecisions(now, before)),
    ...thrown(() => checkDecisions([again], [first.seen])),
    ...thrown(() => checkProofs([first.seen, { ...other.seen, offers: [] }, ...refusals], urls)),
    ...thrown(() => checkProofs([{ ...again, offers: [] }, other.seen, ...refusals], urls)),
    ...epochBack(first.seen, again),
    ...taken(decliner),
  ];
}

const NOTHING: CaseSnapshot = {
  case: null,
  offers: [],
  decisions: [],
  work: [],
  effects: [],
  notes: [],
  transfers: [],
  pending: [],
  plan: null,
  sentTasks: [],
  audit: [],
};

function twoAct({ first, other, again }: Look): string[] {
  const { agent, seen } = first;
  const throughout =
    canAct(first) &&
    canAct({ agent, seen: again }) &&
    seen.case?.epoch === again.case?.epoch &&
    seen.offers.length === again.offers.length;
  if (!throughout || !canAct(other)) return [];
  const at = (side: Side) => `${side.agent} at epoch ${side.seen.case?.epoch}`;
  return [`H1: ${at(first)} and ${at(other)} can act at the same time`];
}

/** H7: who is the owner by another's ledger knows it by its own, which was written first. */
function ownerUnaware({ agent, seen }: Side, later: CaseSnapshot): string[] {
  const row = seen.case;
  // A person's agent writes for the person, in its own ledger.
  if (row === null || actsFor(row.owner) === agent) return [];
  const epoch = later.case?.epoch ?? 0;
  return epoch < row.epoch
    ? [`H7: ${row.owner} is the owner at ${row.epoch}, and its ledger is at ${epoch}`]
    : [];
}

/** H6: the rows as they stand, and the audit, which tells the order in which they came about. */
function actsWhileOut(seen: CaseSnapshot): string[] {
  const started = seen.effects.find(({ state }) => state === 'started');
  const rows =
    openOffer(seen) !== undefined && started ? [`H6: ${started.key} is started while an offer is open`] : [];
  return [...rows, ...startedWhileOut(seen.audit)];
}

function startedWhileOut(audit: readonly AuditEntry[]): string[] {
  const wrong: string[] = [];
  let out = false;
  for (const { type, seq, data } of audit) {
    if (type === 'offer_intended') out = true;
    if (type === 'offer_closed' || type === 'handoff_released') out = false;
    if (type === 'effect_started' && out)
      wrong.push(`H6: ${data?.key} was started at entry ${seq} while an offer was out`);
  }
  return wrong;
}

function taken(decliner: Side | undefined): string[] {
  const isTaken = decliner !== undefined && decliner.seen.case !== null;
  return isTaken ? [`H1: ${decliner.agent} takes no case, and knows this one`] : [];
}

function epochBack(before: CaseSnapshot, now: CaseSnapshot): string[] {
  const [was, is] = [before.case?.epoch ?? 0, now.case?.epoch ?? 0];
  return is < was ? [`H2: an epoch went back from ${was} to ${is}`] : [];
}

function openOffer({ offers }: CaseSnapshot): OfferRow | undefined {
  return offers.find(({ closedAt }) => closedAt === null);
}

/** What is known of a case from outside its ledgers. */
export interface Outside {
  /** In the order in which the target admitted them. */
  readonly acts: readonly Act[];
  /** Epochs of which a sender was told that the receiver accepted. */
  readonly acknowledged: readonly number[];
  /** Whether nobody takes it, so that it goes to a person. */
  readonly escalates?: boolean;
  /** Who takes no case. */
  readonly decliner?: Side;
}

/** What must hold once nothing is under way any more. `root` opened the case. */
export function settledObjections(root: Side, peer: Side, outside: Outside): string[] {
  const { acts, acknowledged, escalates = false, decliner } = outside;
  const sides = [root, peer];
  const all = [...sides, ...(decliner ? [decliner] : [])];
  const snapshots = all.map(({ seen }) => seen);
  const urls = all.map(({ agent }) => agent);
  const nothing = all.map(() => NOTHING);
  return [
    ...thrown(() => checkEpochs(snapshots, nothing)),
    ...thrown(() => checkDecisions(snapshots, nothing)),
    ...thrown(() => checkProofs(snapshots, urls)),
    ...taken(decliner),
    ...(isPersons(root) || isPersons(peer) ? withPerson(root, peer, escalates) : disagreement(root, peer)),
    ...all.flatMap(({ seen }) => [
      ...actsWhileOut(seen),
      ...stillWaiting(seen, escalates),
      ...problemsOf(seen).map((problem) => `H8: ${problem}`),
    ]),
    ...lost(root.seen, acknowledged),
    ...sides.flatMap((side) => misremembered(side, acts)),
    ...strangers(sides, acts),
  ];
}

function disagreement(root: Side, peer: Side): string[] {
  const [here, there] = [root.seen.case, peer.seen.case];
  if (here === null) return ['H1: its root does not know it'];
  const wrong = [root, peer].flatMap(({ agent, seen }) =>
    openOffer(seen) ? [`H6: an offer of ${agent} is open for ever`] : [],
  );
  // Never accepted there: then nothing of it need be known.
  if (there === null) {
    return here.owner === root.agent && here.epoch === 1
      ? wrong
      : [...wrong, 'H7: its owner does not know it'];
  }
  if (here.owner !== there.owner || here.epoch !== there.epoch) {
    wrong.push(`H1: ${here.owner} at ${here.epoch} here, ${there.owner} at ${there.epoch} there`);
  }
  const able = [root, peer].filter(canAct);
  if (able.length !== 1) wrong.push(`H1: ${able.length} can act when all is settled`);
  return wrong;
}

/** Whether a person of this agent owns it by the agent's own ledger. */
export function isPersons({ agent, seen }: Side): boolean {
  const owner = seen.case?.owner ?? agent;
  return parsePerson(owner) !== null && actsFor(owner) === agent;
}

/** Of a case that nobody took: its owner at the next epoch is a person, and only the ledger of their agent knows it. */
function withPerson(root: Side, peer: Side, escalates: boolean): string[] {
  const [own, other] = isPersons(root) ? [root, peer] : [peer, root];
  const epoch = own.seen.case?.epoch ?? 0;
  const wrong = escalates ? [] : [`H1: ${own.seen.case?.owner} owns it, to whom nobody gave it`];
  const before = other.seen.case;
  const isKnown = before?.owner === own.agent && before.epoch === epoch - 1;
  if (epoch === 2 ? before !== null : !isKnown)
    wrong.push(`H7: a person owns ${epoch} here, and ${before?.owner} ${before?.epoch} there`);
  const last = own.seen.transfers.find(({ newEpoch }) => newEpoch === epoch);
  if (last?.toAgent !== own.seen.case?.owner) wrong.push('H2: its person owns it without a change of owner');
  if ([root, peer].some(({ seen }) => seen.work.some((item) => item.epoch === epoch)))
    wrong.push('H4: a person owns it, and it was accepted at their epoch');
  if ([root, peer].some(({ seen }) => openOffer(seen) !== undefined))
    wrong.push('H6: an offer is open for ever');
  if ([root, peer].some(canAct)) wrong.push('H1: an agent can act on what its person owns');
  return wrong;
}

/** H7: what waits is decided some day, and a list of candidates comes to an end. */
function stillWaiting({ pending, plan }: CaseSnapshot, escalates: boolean): string[] {
  const wrong = pending
    .filter(({ state }) => state !== 'decided')
    .map(({ state, key }) => `H7: ${key.handoffId}:${key.attempt} is ${state} for ever at its receiver`);
  const end = escalates ? 'ended escalated' : 'ended accepted';
  const is = plan && `${plan.state} ${plan.reason}`;
  if (is !== null && is !== end) wrong.push(`H7: its list of candidates is ${is}, not ${end}`);
  return wrong;
}

function lost(seen: CaseSnapshot, acknowledged: readonly number[]): string[] {
  const known = new Set(seen.transfers.map(({ newEpoch }) => newEpoch));
  return acknowledged
    .filter((epoch) => !known.has(epoch))
    .map((epoch) => `H7: the acceptance of epoch ${epoch} was acknowledged and is lost`);
}

/** H5: what a ledger says of the effects that it started is what the target saw. */
function misremembered({ agent, seen }: Side, acts: readonly Act[]): string[] {
  const wrong: string[] = [];
  for (const { key, state, epoch } of seen.effects) {
    const same = acts.filter((act) => act.key === key);
    const times = same.length;
    // What has failed here, a later owner may start again.
    const before = same.some((act) => act.epoch <= epoch);
    if (state === 'done' && times !== 1)
      wrong.push(`H5: ${key} is done by the ledger of ${agent} and happened ${times} times`);
    if (state === 'failed' && before)
      wrong.push(`H5: ${key} has failed by the ledger of ${agent} and happened`);
    if (state === 'started') wrong.push(`H5: ${key} is started for ever in the ledger of ${agent}`);
  }
  const known = new Set(seen.effects.map(({ key }) => key));
  for (const act of acts.filter((one) => one.agent === agent && !known.has(one.key))) {
    wrong.push(`H5: ${act.key} happened, and its ledger does not know it`);
  }
  return wrong;
}

/** H3: whoever acted at an epoch was the owner then, by the receipts. */
function strangers(sides: readonly Side[], acts: readonly Act[]): string[] {
  const owners = new Map([[1, sides[0]?.agent]]);
  for (const { seen } of sides) {
    for (const { newEpoch, toAgent } of seen.transfers) owners.set(newEpoch, toAgent);
  }
  return acts
    .filter(({ agent, epoch }) => owners.get(epoch) !== agent)
    .map(
      ({ key, agent, epoch }) =>
        `H3: ${key} was done by ${agent}, and ${owners.get(epoch)} owned epoch ${epoch}`,
    );
}

/** A decision that the receiver made on other bytes than were offered; they were changed on the way. */
export function decidedOtherBytes(sender: CaseSnapshot, receiver: CaseSnapshot): boolean {
  const id = ({ sender: by, handoffId, attempt }: AcceptanceKey) => `${by} ${handoffId}:${attempt}`;
  const offered = new Map(sender.offers.map((offer) => [id(offer.key), offer.digest]));
  return receiver.decisions.some(
    ({ key, digest, taskId }) =>
      taskId !== null && digest !== null && offered.has(id(key)) && offered.get(id(key)) !== digest,
  );
}

function thrown(check: () => void): string[] {
  try {
    check();
    return [];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}
