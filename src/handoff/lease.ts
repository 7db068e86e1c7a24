import { type AcceptanceKey, isHoldfastError, type Logger, newId, pause } from '../core/index.js';
import type {
  Claimed,
  DuePush,
  LedgerStore,
  OfferRow,
  PendingOffer,
  PushClaim,
  WorkItem,
} from '../ledger/index.js';

export interface LeaseOptions {
  readonly ledger: Pick<
    LedgerStore,
    'heartbeat' | 'isAlive' | 'claimOffers' | 'claimWork' | 'claimPending' | 'claimPushes' | 'release'
  >;
  /** URL of the agent that this process acts for. */
  readonly agent: string;
  readonly logger: Logger;
  /** How long this process counts as living after it last said so, milliseconds. */
  readonly leaseMs: number;
  /** How often it says so, milliseconds. */
  readonly beatMs: number;
  /** Called when the lease begins; what it returns is called when it ends. */
  announce?(holder: string): () => void;
}

/** That this process lives, as the ledger knows it, and what it has claimed meanwhile. */
export interface Lease {
  /** Names this process, and no other or later one. */
  readonly holder: string;
  /** Aborted where the lease has run out: what was claimed under it may be another's by now. A new term has begun then. */
  readonly term: AbortSignal;
  /** Says for the first time that the process lives, and goes on saying it. */
  begin(): Promise<void>;
  /** The same, and says it anew where the lease has run out meanwhile, as of a process that was not let run. */
  hold(): Promise<void>;
  claimOffers(tenant: string, limit: number): Promise<OfferRow[]>;
  /** False where it is decided, or somebody who lives has it; this process too. */
  claimOffer(key: AcceptanceKey): Promise<boolean>;
  claimWork(tenant: string, limit: number): Promise<WorkItem[]>;
  claimWorkItem(item: WorkItem): Promise<boolean>;
  claimPending(tenant: string, limit: number): Promise<PendingOffer[]>;
  claimPushes(
    tenant: string,
    limit: number,
    under: Pick<PushClaim, 'without' | 'working'>,
  ): Promise<DuePush[]>;
  /** Gives back one claim. Never fails: what cannot be given back now is once the lease is renewed. */
  release(claimed: Claimed): Promise<void>;
  /** Gives back everything; others can go on at once. */
  end(): Promise<void>;
}

export function createLease({ ledger, agent, logger, leaseMs, beatMs, announce }: LeaseOptions): Lease {
  const holder = `${agent}#${newId('run')}`;
  const ended = new AbortController();
  let term = new AbortController();
  let begun: Promise<void> | null = null;
  let leave = (): void => undefined;
  let beating: Promise<void> = Promise.resolve();

  /** Claims that could not be given back, and that this process does not work on any more. */
  const owed = new Set<Claimed>();
  /** Of `performance.now()`, when the lease was kept last; infinite where there is none yet. */
  let keptAt = Number.POSITIVE_INFINITY;
  /** Whether the process may lack what it believes to have claimed, or have what it does not know of. */
  let doubtful = false;
  let renewing: Promise<void> | null = null;

  async function goOn(): Promise<void> {
    while (!ended.signal.aborted) {
      await pause(beatMs, ended.signal);
      if (ended.signal.aborted) return;
      try {
        await renew();
        for (const claimed of owed) {
          await ledger.release(holder, claimed);
          owed.delete(claimed);
        }
      } catch (err) {
        logger.warn({ code: codeOf(err), err }, 'the lease could not be renewed');
      }
    }
  }

  function renew(): Promise<void> {
    renewing ??= keepOrBeginAnew().finally(() => {
      renewing = null;
    });
    return renewing;
  }

  /** A process that slept too long, by a pause or a busy event loop, finds its claims gone and must not act on them. */
  async function keepOrBeginAnew(): Promise<void> {
    if (!doubtful && (await ledger.isAlive(holder))) {
      await keep();
      if (!doubtful) return;
    }
    logger.warn({ leaseMs }, 'the lease had run out; others may have taken over what this process worked on');
    // First of all: what is claimed as soon as the lease has begun anew is already of the new term.
    const old = term;
    term = new AbortController();
    old.abort();
    // So that nothing is held that nobody works on.
    await ledger.release(holder);
    keptAt = Number.POSITIVE_INFINITY;
    await keep();
    doubtful = false;
    owed.clear();
  }

  /** Between the question whether a lease still runs and its renewal it can run out. */
  async function keep(): Promise<void> {
    const now = performance.now();
    await ledger.heartbeat(holder, leaseMs);
    if (performance.now() - keptAt >= leaseMs) doubtful = true;
    keptAt = now;
  }

  function begin(): Promise<void> {
    begun ??= keep().then(
      () => {
        leave = announce?.(holder) ?? leave;
        beating = goOn();
      },
      (error: unknown) => {
        begun = null;
        throw error;
      },
    );
    return begun;
  }

  async function hold(): Promise<void> {
    await begin();
    await renewing?.catch(() => undefined);
    if (!(await ledger.isAlive(holder))) await renew();
  }

  async function claim<T>(attempt: () => Promise<T[]>): Promise<T[]> {
    await begin();
    // What is claimed while all claims are given back would be given back with them.
    await renewing?.catch(() => undefined);
    try {
      const found = await attempt();
      if (found.length > 0 || (await ledger.isAlive(holder))) return found;
      await renew();
      return await attempt();
    } catch (error) {
      if (codeOf(error) === 'outcome_unknown') doubtful = true;
      throw error;
    }
  }

  return {
    holder,
    get term() {
      return term.signal;
    },
    begin,
    hold,
    claimOffers: (tenant, limit) => claim(() => ledger.claimOffers({ tenant, agent, holder, limit })),
    async claimOffer(key) {
      const one = { tenant: key.tenant, agent, holder, limit: 1, key };
      return (await claim(() => ledger.claimOffers(one))).length > 0;
    },
    claimWork: (tenant, limit) => claim(() => ledger.claimWork({ tenant, agent, holder, limit })),
    async claimWorkItem({ ref, id }) {
      const one = { tenant: ref.tenant, agent, holder, limit: 1, workId: id };
      return (await claim(() => ledger.claimWork(one))).length > 0;
    },
    claimPending: (tenant, limit) => claim(() => ledger.claimPending({ tenant, agent, holder, limit })),
    claimPushes: (tenant, limit, under) =>
      claim(() => ledger.claimPushes({ tenant, agent, holder, limit, ...under })),
    async release(claimed) {
      try {
        await ledger.release(holder, claimed);
      } catch (err) {
        owed.add(claimed);
        logger.warn({ code: codeOf(err), err }, 'a claim could not be given back; that is tried again');
      }
    },
    async end() {
      ended.abort();
      term.abort();
      const started = begun;
      if (started === null) return;
      await started.catch(() => undefined);
      await beating;
      try {
        await ledger.release(holder);
        leave();
      } catch (err) {
        logger.warn({ code: codeOf(err), err }, 'the lease could not be given back');
      }
    },
  };
}

function codeOf(error: unknown): string {
  return isHoldfastError(error) ? error.code : 'internal';
}
