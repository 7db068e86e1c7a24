import {
  actsFor,
  HoldfastError,
  handoffIdOf,
  isHoldfastError,
  type Logger,
  newId,
  pause,
  sha256Hex,
} from '../core/index.js';
import type {
  AwaitedPeer,
  BeginIncarnationCommand,
  Incarnation,
  LedgerStore,
  ReceiptOutcome,
  Transfer,
} from '../ledger/index.js';
import { type HeldOffer, MAX_HELD_OFFERS } from '../protocol/index.js';
import {
  issuerOf,
  type NodeIdentity,
  type Peer,
  type PeerDirectory,
  type PeerKeySource,
  verifyReceipt,
} from '../trust/index.js';
import type { Lease } from './lease.js';
import type { PeerClient } from './port.js';
import { selfAsPeer } from './provenance.js';

export interface AnnouncerOptions {
  readonly identity: NodeIdentity;
  readonly ledger: LedgerStore;
  /** Of all cases that this agent can have a part in; its own first. */
  readonly tenants: readonly string[];
  readonly peers: PeerDirectory;
  readonly keys: PeerKeySource;
  readonly client: PeerClient;
  readonly lease: Pick<Lease, 'holder' | 'begin' | 'hold'>;
  readonly logger: Logger;
  /** The waits before a peer is asked again grow from the first to the last of these, milliseconds. */
  readonly backoffMs: readonly [first: number, last: number];
  /** Whether a process of this machine runs; what a lease says may have been put back with the ledger. */
  runs(holder: string): boolean;
}

/** Tells peers that this agent begins a new life on its ledger, and takes over what they hold of the one before. */
export interface Announcer {
  /**
   * Begins an incarnation, or joins the one under which another process works; nothing where the ledger has no `separate` kind. From then
   * on its cases of such kinds wait for the peers.
   */
  begin(): Promise<void>;
  /** Asks every peer that has not answered, once, whose time it is. */
  ask(): Promise<void>;
  /** A peer has announced itself, so that it is asked now, in the background; not before the time that it was given. */
  heard(peer: string): void;
  /** Resolves once every peer has answered, or some time has passed since this process began: who acts right after a start need not be refused. */
  asked(): Promise<void>;
  /** Begins nothing more, and resolves once nothing is under way; a request is waited for as long as connections last. */
  stop(): Promise<void>;
}

const POLL_MS = 100;
/** How long one who acts waits for peers that are being asked, milliseconds. */
const ASK_WAIT_MS = 3_000;
const ASK_POLL_MS = 20;
const MOST_TRIES = 10;

export function createAnnouncer(options: AnnouncerOptions): Announcer {
  const { identity, ledger, peers, lease, logger } = options;
  const agent = identity.url;
  /** When each peer is to be asked again, of `performance.now()`, and how often it was. */
  const tried = new Map<string, { readonly at: number; readonly tries: number }>();
  const underWay = new Map<string, Promise<void>>();
  /** All that uses the ledger or the wire, the callers' and the background's. */
  const running = new Set<Promise<void>>();
  const stopping = new AbortController();
  let begun: Promise<void> | null = null;
  let begunAt = 0;
  let settled = false;

  function tracked(work: Promise<void>): Promise<void> {
    running.add(work);
    const end = () => void running.delete(work);
    work.then(end, end);
    return work;
  }

  function begin(): Promise<void> {
    begun ??= beginNow().catch((error: unknown) => {
      begun = null;
      throw error;
    });
    return begun;
  }

  async function beginNow(): Promise<void> {
    begunAt = performance.now();
    const awaited = await partners();
    if (awaited === null) {
      // A kind can become known while this process runs.
      begun = null;
      return;
    }
    await lease.begin();
    const living = await livingOthers();
    const { incarnation, minted } = await underLease({
      agent,
      holder: lease.holder,
      incarnation: newId('inc'),
      peers: awaited,
      living,
    });
    // Not where another process of the agent has begun it, as of every command beside a node.
    if (minted) logger.info({ incarnation, peers: awaited.length }, 'incarnation begun');
  }

  /** To look for others can take as long as a lease, and one that ran out is given back before it begins anew. */
  async function underLease(command: BeginIncarnationCommand) {
    for (let tries = 1; ; tries += 1) {
      await lease.hold();
      try {
        return await ledger.beginIncarnation(command);
      } catch (error) {
        if (tries === MOST_TRIES || !isHoldfastError(error) || error.code !== 'usage') throw error;
        await pause(ASK_POLL_MS, stopping.signal);
      }
    }
  }

  /** Peers that a case of a `separate` kind can have gone to, or come from; `null` where there is no such kind. */
  async function partners(): Promise<Pick<AwaitedPeer, 'peer' | 'contracts'>[] | null> {
    const kinds = (await Promise.all(options.tenants.map((tenant) => ledger.listKinds(tenant)))).flat();
    const separate = new Set(
      kinds.filter(({ mode }) => mode === 'separate').flatMap(({ contracts }) => contracts),
    );
    if (separate.size === 0) return null;
    return peers
      .list()
      .map(({ url, contracts }) => ({ peer: url, contracts: contracts.filter((one) => separate.has(one)) }))
      .filter(({ contracts }) => contracts.length > 0);
  }

  /** Other processes that work under the present incarnation: they run on this machine, or have said anew that they live. */
  async function livingOthers(): Promise<string[]> {
    const current = await ledger.getIncarnation(agent);
    if (current === null) return [];
    const others = async () =>
      (await ledger.listLeases(agent)).filter(
        ({ holder }) => holder !== lease.holder && current.holders.includes(holder),
      );
    const first = await others();
    const running = first.filter(({ holder }) => options.runs(holder)).map(({ holder }) => holder);
    if (running.length > 0 || first.length === 0) return running;
    const until = new Map(first.map((one) => [one.holder, one.until]));
    logger.info({ others: first.length }, 'another process of this agent may live; waiting until it says so');
    for (;;) {
      await pause(POLL_MS, stopping.signal);
      if (stopping.signal.aborted)
        throw new HoldfastError('usage', 'The agent was closed before it had begun.');
      const now = await others();
      const renewed = now.filter((one) => (until.get(one.holder) ?? '') < one.until);
      if (renewed.length > 0 || now.length === 0) return renewed.map(({ holder }) => holder);
    }
  }

  async function ask(): Promise<void> {
    if (stopping.signal.aborted) return;
    await begin();
    const current = await ledger.getIncarnation(agent);
    if (current === null) return;
    const waiting = (await ledger.listAwaited(agent)).filter(({ state }) => state !== 'answered');
    const due = waiting.filter(({ peer }) => (tried.get(peer)?.at ?? 0) <= performance.now());
    await Promise.all(due.map(({ peer }) => askOnce(peer, current)));
  }

  /** Two starts at the same moment find each other not there yet; who is later tells the other that it is. */
  async function heard(peer: string): Promise<void> {
    if (settled || stopping.signal.aborted) return;
    try {
      const current = await ledger.getIncarnation(agent);
      const awaited = await ledger.listAwaited(agent);
      const waits = awaited.some((one) => one.peer === peer && one.state !== 'answered');
      if (current !== null && waits) await askOnce(peer, current);
    } catch (err) {
      logger.warn({ peer, err }, 'a peer that was heard could not be asked; it is asked again');
    }
  }

  async function asked(): Promise<void> {
    while (!settled && !stopping.signal.aborted) {
      const waits = (await ledger.listAwaited(agent)).some(({ state }) => state === 'waiting');
      settled = !waits || performance.now() - begunAt > ASK_WAIT_MS;
      if (!settled) await pause(ASK_POLL_MS, stopping.signal);
    }
  }

  async function askOnce(peer: string, current: Incarnation): Promise<void> {
    if (stopping.signal.aborted) return;
    const before = underWay.get(peer);
    if (before !== undefined) return before;
    const asking = askOne(peer, current).finally(() => underWay.delete(peer));
    underWay.set(peer, asking);
    return asking;
  }

  async function askOne(url: string, current: Incarnation): Promise<void> {
    const { incarnation } = current;
    const peer = peers.find(url);
    try {
      if (peer === null) throw new HoldfastError('peer_unknown');
      if (!(await exchange(peer, current))) return;
      await ledger.peerAnswered({ agent, peer: url, incarnation });
      logger.info({ peer: url, incarnation }, 'a peer has said what it holds');
    } catch (err) {
      const { tries } = tried.get(url) ?? { tries: 0 };
      const [first, last] = options.backoffMs;
      const waitMs = Math.min(last, first * 2 ** Math.min(tries, 30)) * (0.5 + Math.random() / 2);
      tried.set(url, { at: performance.now() + waitMs, tries: tries + 1 });
      const code = isHoldfastError(err) ? err.code : 'internal';
      logger.warn({ peer: url, incarnation, code }, 'a peer has not said what it holds; it is asked again');
    }
  }

  /** All of it: the offers that still count, then every page of receipts. False where it was stopped. */
  async function exchange(peer: Peer, { incarnation, since }: Incarnation): Promise<boolean> {
    const held = await heldFor(peer.url);
    const say = { verb: 'ledger.announce' as const, incarnation, since };
    for (let at = 0; at + MAX_HELD_OFFERS < held.length; at += MAX_HELD_OFFERS) {
      await options.client.control(peer.url, { ...say, open: held.slice(at, at + MAX_HELD_OFFERS) });
    }
    const open = held.slice(Math.floor(Math.max(0, held.length - 1) / MAX_HELD_OFFERS) * MAX_HELD_OFFERS);
    const seen = new Set<string>();
    for (let cursor: string | undefined; ; ) {
      const page = cursor === undefined ? {} : { cursor };
      const answer = await options.client.control(peer.url, { ...say, open, ...page });
      const before = seen.size;
      for (const receipt of answer.receipts) {
        await takeOver(receipt, peer.url);
        seen.add(sha256Hex(receipt));
      }
      if (answer.next === undefined) return true;
      // Else it could lead on for ever, by cursors that are always new.
      if (seen.size === before)
        throw new HoldfastError('peer_error', 'The peer promises more receipts and gives none.');
      if (stopping.signal.aborted) return false;
      cursor = answer.next;
    }
  }

  async function heldFor(toAgent: string): Promise<HeldOffer[]> {
    const offers = await Promise.all(
      options.tenants.map((tenant) => ledger.listOffers(tenant, { from: agent, to: toAgent, open: true })),
    );
    return offers.flat().map(({ key: { root, handoffId, attempt } }) => ({
      root,
      handoff_id: handoffId,
      attempt,
    }));
  }

  /** @throws peer_unreachable where the keys of another issuer cannot be read now */
  async function takeOver(receipt: string, by: string): Promise<void> {
    const transfer = await read(receipt, by);
    if (transfer === null) return;
    const { ref, newEpoch: epoch, toAgent } = transfer;
    const contracts = peers.find(actsFor(toAgent))?.contracts;
    const judged = await isJudged(transfer);
    const outcome: ReceiptOutcome = await ledger.settleReceipt({
      ...{ agent, by, transfer, judged },
      ...(contracts === undefined ? {} : { contracts }),
    });
    if (outcome === 'known' || outcome === 'passed') return;
    const fields = { case: ref.caseId, root: ref.root, epoch, owner: toAgent, by };
    if (outcome === 'foreign') logger.warn(fields, 'a peer claims a case that it cannot have');
    else if (outcome === 'quarantined')
      logger.error(fields, 'a receipt contradicts the ledger; case quarantined');
    else logger.warn(fields, 'a receipt tells of a change of owner that the ledger had lost');
  }

  /** Whether a recovery has settled what became of the offer that the receipt accepts; asked only where that is not closed by it. */
  async function isJudged({ key, ref }: Transfer): Promise<boolean> {
    const offer = await ledger.getOffer(key);
    if (offer === null || offer.state === 'accepted') return false;
    const entries = await ledger.readAudit(ref);
    return entries.some(({ type, data }) => {
      const lost = data?.lost as { readonly handoffId?: unknown; readonly attempt?: unknown } | undefined;
      return type === 'case_recovered' && lost?.handoffId === key.handoffId && lost.attempt === key.attempt;
    });
  }

  /** What the receipt proves; `null` where it is of no agent known here, or not about this one: then it proves nothing. */
  async function read(receipt: string, by: string): Promise<Transfer | null> {
    const issuer = issuerOf(receipt) ?? '';
    const isOwn = issuer === agent;
    const peer = isOwn ? selfAsPeer(identity) : peers.find(issuer);
    const keys: PeerKeySource = isOwn ? { keysOf: async () => identity.jwks().keys } : options.keys;
    const ignore = (code: string): null => {
      logger.warn({ by, issuer, code }, 'a receipt that a peer handed over is left aside');
      return null;
    };
    if (peer === null) return ignore('peer_unknown');
    const verified = await verifyReceipt(receipt, peer, keys).catch((error: unknown) => {
      if (isHoldfastError(error) && error.code === 'receipt_invalid') return null;
      throw error;
    });
    if (verified === null) return ignore('receipt_invalid');
    const { claims, key } = verified;
    const { root, case_id: caseId, from_agent: sender, to_agent: toAgent } = claims;
    const [from, to] = [actsFor(sender), actsFor(toAgent)];
    const isStep =
      claims.iss === to &&
      to === peer.url &&
      (from === agent || to === agent) &&
      // A person counts only within the node that signs for them.
      (from === to || (from === sender && to === toAgent)) &&
      sender !== toAgent &&
      claims.new_epoch === claims.old_epoch + 1 &&
      claims.handoff_id === handoffIdOf(caseId, claims.old_epoch);
    if (!isStep) return ignore('receipt_invalid');
    const tenant = await tenantOf(root, caseId, to === agent && from !== agent ? sender : null);
    const ref = { tenant, root, caseId };
    return {
      key: { tenant, root, sender, handoffId: claims.handoff_id, attempt: claims.attempt },
      ref,
      toAgent,
      oldEpoch: claims.old_epoch,
      newEpoch: claims.new_epoch,
      digest: claims.digest,
      receipt,
      receiptKey: JSON.stringify(key),
    };
  }

  /** A receipt names no tenant: it is that of the case as it is here, or else that in which it was accepted. */
  async function tenantOf(root: string, caseId: string, sender: string | null): Promise<string> {
    for (const tenant of options.tenants) {
      if ((await ledger.getCase({ tenant, root, caseId })) !== null) return tenant;
    }
    const from = sender === null ? null : peers.find(sender);
    return from?.tenant ?? options.tenants[0] ?? '';
  }

  async function stop(): Promise<void> {
    stopping.abort();
    while (running.size > 0) await Promise.allSettled(running);
  }

  return {
    begin: () => tracked(begin()),
    ask: () => tracked(ask()),
    heard: (peer) => void tracked(heard(peer)),
    asked: () => tracked(asked()),
    stop,
  };
}
