import { type AcceptanceKey, actsFor, type CaseRef, HoldfastError, toUtc } from '../../core/index.js';
import type { OfferOrigin } from '../commands.js';
import type {
  AwaitedPeer,
  BeginIncarnationCommand,
  HearIncarnationCommand,
  Incarnation,
  PeerAnsweredCommand,
  WaivePeerCommand,
} from '../incarnation.js';
import type { KindDefinition } from '../model.js';
import { resolutionOf } from './resolution.js';
import type { Change, LedgerView, Rule } from './ruling.js';

/*
 * An agent whose ledger was put back to an earlier state does not know it, where everything on its disk was put back with it. So each
 * start asks its peers, and until they have answered, nothing is done that only one owner may do. For each peer of an incarnation:
 *   waiting -> answered   it has stored the incarnation, and every receipt that it holds was taken over
 *   waiting -> waived     a person says that it is gone for good; for this incarnation only
 * The other side keeps the incarnation of each of its peers: an offer that was made under an earlier one may be of a time that its sender
 * has lost, and counts only where the sender says that it still holds it.
 */

/** How an offer is named among those that its sender still holds open. */
export function attemptName({ root, handoffId, attempt }: Omit<AcceptanceKey, 'tenant' | 'sender'>): string {
  return [root, handoffId, attempt].join(' ');
}

export const beginIncarnation: Rule<
  BeginIncarnationCommand,
  { readonly incarnation: string; readonly minted: boolean }
> = (view, command) => {
  const { agent, holder } = command;
  const leased = view.leasesOf(agent);
  if (!leased.some((lease) => lease.holder === holder)) {
    throw new HoldfastError('usage', 'A process without a lease begins no incarnation.');
  }
  const current = view.incarnationOf(agent);
  const lives = (one: string) =>
    one === holder || (command.living.includes(one) && leased.some((lease) => lease.holder === one));
  const holders = current?.holders.filter(lives) ?? [];
  const since = toUtc(view.now);
  if (current === null || holders.length === 0) {
    const row: Incarnation = {
      agent,
      incarnation: command.incarnation,
      since: current === null ? since : after(current.since, view.now),
      holders: [holder],
      rev: (current?.rev ?? 0) + 1,
    };
    const waiting = command.peers.map((peer) => awaiting(peer, row, since));
    return {
      changes: [
        { do: 'set_incarnation', row },
        { do: 'drop_awaited', agent },
        ...waiting.map((each): Change => ({ do: 'set_awaited', row: each })),
      ],
      audit: null,
      result: { incarnation: row.incarnation, minted: true },
    };
  }
  const known = new Map(view.awaited(agent).map((row) => [row.peer, row]));
  const added = command.peers.flatMap((peer) => {
    const before = known.get(peer.peer);
    if (before === undefined) return [awaiting(peer, current, since)];
    const isNew = peer.contracts.some((contract) => !before.contracts.includes(contract));
    return isNew ? [{ ...before, contracts: peer.contracts }] : [];
  });
  const joined = holders.includes(holder) ? holders : [...holders, holder];
  return {
    changes: [
      { do: 'set_incarnation', row: { ...current, holders: joined, rev: current.rev + 1 } },
      ...added.map((row): Change => ({ do: 'set_awaited', row })),
    ],
    audit: null,
    result: { incarnation: current.incarnation, minted: false },
  };
};

function after(last: string, now: Date): string {
  return toUtc(new Date(Math.max(now.getTime(), Date.parse(last) + 1)));
}

function awaiting(
  { peer, contracts }: Pick<AwaitedPeer, 'peer' | 'contracts'>,
  { agent, incarnation }: Pick<Incarnation, 'agent' | 'incarnation'>,
  since: string,
): AwaitedPeer {
  return { agent, peer, incarnation, contracts, state: 'waiting', since, by: null, reason: null };
}

/** An answer to an earlier incarnation is none. */
export const peerAnswered: Rule<PeerAnsweredCommand, AwaitedPeer | null> = (
  view,
  { agent, peer, incarnation },
) => {
  const row = view.awaited(agent).find((one) => one.peer === peer);
  if (row?.incarnation !== incarnation) return { changes: [], audit: null, result: null };
  if (row.state === 'answered') return { changes: [], audit: null, result: row };
  const answered: AwaitedPeer = { ...row, state: 'answered', since: toUtc(view.now) };
  return { changes: [{ do: 'set_awaited', row: answered }], audit: null, result: answered };
};

export const waivePeer: Rule<WaivePeerCommand, AwaitedPeer> = (view, { agent, peer, resolution }) => {
  const said = resolutionOf(resolution, agent);
  const row = view.awaited(agent).find((one) => one.peer === peer);
  if (row?.state !== 'waiting') throw new HoldfastError('usage', `Nothing waits for ${peer}.`);
  const waived: AwaitedPeer = {
    ...row,
    state: 'waived',
    since: toUtc(view.now),
    by: resolution.by,
    reason: String(said.reason),
  };
  return { changes: [{ do: 'set_awaited', row: waived }], audit: null, result: waived };
};

/** @throws incarnation_superseded where a later one was heard of */
export const hearIncarnation: Rule<HearIncarnationCommand, void> = (view, command) => {
  const { tenant, agent, peer, incarnation, since } = command;
  const before = view.heardFrom(tenant, agent, peer);
  const same = before?.incarnation === incarnation;
  if (before !== null && !same && before.since >= since) {
    throw new HoldfastError('incarnation_superseded', undefined, { data: { since: before.since } });
  }
  const open = same ? [...new Set([...before.open, ...command.open])] : command.open;
  const rev = (before?.rev ?? 0) + 1;
  return {
    changes: [{ do: 'set_heard', row: { ...command, open, rev } }],
    audit: null,
    result: undefined,
  };
};

/** What is to be known of the peers before one who may be the owner acts on a case of the kind. */
export interface Standing {
  /** Those who have not answered, as data of the error. `null` where nothing is missing. */
  readonly missing: { readonly peers: string; readonly incarnation: string } | null;
  /** What a person took upon themselves; it stands in the audit with what is done then. */
  readonly waived: readonly { readonly peer: string; readonly by: string; readonly reason: string }[];
}

/** Only a case of a `separate` kind can be another's without this ledger knowing. */
export function peersOf(view: LedgerView, kind: KindDefinition | null, writer: string): Standing {
  if (kind?.mode !== 'separate') return { missing: null, waived: [] };
  const its = view
    .awaited(actsFor(writer))
    .filter(({ contracts }) => contracts.some((contract) => kind.contracts.includes(contract)));
  const waiting = its.filter(({ state }) => state === 'waiting');
  const [first] = waiting;
  return {
    missing:
      first === undefined
        ? null
        : { peers: waiting.map(({ peer }) => peer).join(', '), incarnation: first.incarnation },
    waived: its
      .filter(({ state }) => state === 'waived')
      .map(({ peer, by, reason }) => ({ peer, by: by ?? '', reason: reason ?? '' })),
  };
}

/** For the audit fact of what is done although not everybody has answered. */
export function waivedIn({ waived }: Standing): { readonly waived?: Standing['waived'] } {
  return waived.length === 0 ? {} : { waived };
}

/**
 * A rejection or a tombstone gives the case back to its sender, who then acts. Any peer may hold the proof that it was accepted here and handed
 * on, in a time that this ledger has lost. `kind`: `null` where nobody here knows of which kind the case is.
 * @throws peers_unanswered: nothing is decided
 */
export function assertAllHeard(view: LedgerView, agent: string, kind: KindDefinition | null): void {
  if (kind?.mode === 'shared') return;
  const isIts = ({ contracts }: AwaitedPeer) =>
    kind === null || contracts.some((one) => kind.contracts.includes(one));
  const waiting = view.awaited(agent).filter((one) => one.state === 'waiting' && isIts(one));
  const [first] = waiting;
  if (first === undefined) return;
  const data = { peers: waiting.map(({ peer }) => peer).join(', '), incarnation: first.incarnation };
  throw new HoldfastError('peers_unanswered', undefined, { data });
}

/**
 * A decision in a `separate` kind waits for its sender: it may hold a receipt of this agent for the very case. An acceptance waits for nobody
 * else, since no effect is started under it before all have answered. And it decides no offer of a time that its sender may have lost. The change proves, where others write at the same time,
 * that the sender has said nothing new. Nothing where the kind is shared.
 * @throws peers_unanswered, incarnation_superseded: nothing is decided
 */
export function heardSender(
  view: LedgerView,
  { key, ref }: { readonly key: AcceptanceKey; readonly ref: CaseRef },
  { kind: named, toAgent: agent, incarnation }: OfferOrigin,
): readonly Change[] {
  if (view.kind(ref.tenant, view.case(ref)?.kind ?? named)?.mode !== 'separate') return [];
  const { tenant, sender: peer } = key;
  const awaited = view.awaited(agent).find((one) => one.peer === peer);
  if (awaited?.state === 'waiting') {
    const data = { peers: peer, incarnation: awaited.incarnation };
    throw new HoldfastError('peers_unanswered', undefined, { data });
  }
  const heard = view.heardFrom(tenant, agent, peer);
  const isOfNow = incarnation === null || heard === null || heard.incarnation === incarnation;
  if (!isOfNow && !heard.open.includes(attemptName(key))) {
    throw new HoldfastError('incarnation_superseded', undefined, { data: { since: heard.since } });
  }
  return [{ do: 'check_heard', tenant, agent, peer, rev: heard?.rev ?? 0 }];
}
