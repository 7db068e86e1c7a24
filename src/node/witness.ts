import { HoldfastError, type Logger } from '../core/index.js';
import type { LedgerStore, Quarantine } from '../ledger/index.js';
import type { Seen, SeenLedger, WitnessFiles } from '../storage/index.js';

/** Cases named in the log one by one; the others are counted, and `holdfast attention` lists all. */
const MAX_NAMED = 20;
/** Up to this, bytes of journal (some ten thousand cases), every opening checks all of it; above, only a start of the node. */
const ALWAYS_CHECKED_BYTES = 4 * 1024 * 1024;
/** Commands leave a journal each; so many are put together. */
const MAX_FILES = 16;

export interface WitnessReport {
  readonly cases: number;
  readonly quarantined: number;
}

/** A PostgreSQL server, and the branch of its history that it writes; a promotion begins the next. */
export interface Server {
  readonly systemId: string;
  readonly timeline: number;
}

export interface Witness {
  /** The ledger, with what this agent sees committed kept outside of it before anyone is told. */
  readonly ledger: LedgerStore;
  /** Compares the ledger with everything seen of it, and closes each case of which it is older. */
  check(options?: { readonly rewrite?: boolean }): Promise<WitnessReport>;
  /** The same through another connection to a server that has just taken over, before anything else is asked of it. */
  checkServer(server: Server, ledger: LedgerStore): Promise<void>;
}

/**
 * A ledger whose disk lied, that was restored, or that a standby took over behind the old primary has lost commits and does not know it.
 * What an agent has seen committed stands in its own folder, so that it can tell.
 * @throws ledger_changed where the ledger is not the one seen, unless `accepting` names it; config_invalid where a journal is damaged
 */
export async function openWitness(parts: {
  readonly files: WitnessFiles;
  readonly ledger: LedgerStore;
  readonly logger: Logger;
  /** The server that the ledger is on, where it is on one. */
  readonly server: Server | null;
  /** The incarnation that a person says is to be taken for the ledger from now on. */
  readonly accepting?: string;
}): Promise<Witness> {
  const { files, logger } = parts;
  const before = files.ledger();
  const found = seenOn(await parts.ledger.incarnation(), parts.server);
  assertKnown(files, before, found, parts.accepting);

  async function check(ledger: LedgerStore, rewrite: boolean): Promise<WitnessReport> {
    let cases = 0;
    let quarantined = 0;
    await files.visit(
      async (batch) => {
        const verdicts = await Promise.all(batch.map((seen) => compare(ledger, seen)));
        for (const { regression } of verdicts) {
          if (regression === null) continue;
          await ledger.quarantine(regression);
          quarantined += 1;
          if (quarantined <= MAX_NAMED) logger.error(fieldsOf(regression), 'case quarantined');
        }
        cases += batch.length;
        return batch.filter((_, index) => verdicts[index]?.closed !== true);
      },
      { rewrite },
    );
    if (quarantined > MAX_NAMED) {
      logger.error({ quarantined }, 'more cases quarantined than are named here');
    }
    return { cases, quarantined };
  }

  const { bytes, files: journals } = files.size();
  const other = before !== null && !isSameLedger(before, found);
  if (other || bytes <= ALWAYS_CHECKED_BYTES) await check(parts.ledger, journals > MAX_FILES);
  if (before === null || other) await files.keepLedger({ ...found, ...usedAs(before) });
  return {
    ledger: witnessed(parts.ledger, files, logger),
    check: ({ rewrite = false } = {}) => check(parts.ledger, rewrite),
    async checkServer(server, ledger) {
      logger.warn({ ...server }, 'another server has taken over; it is compared with what was seen');
      const now = seenOn(await ledger.incarnation(), server);
      assertKnown(files, files.ledger(), now);
      await check(ledger, false);
      await files.keepLedger({ ...now, ...usedAs(files.ledger()) });
    },
  };
}

/** @throws ledger_changed where the server is an old primary that came back, and lacks what was committed since */
export function assertNotOlder(files: WitnessFiles, { systemId, timeline }: Server): void {
  const seen = files.ledger();
  if (seen?.system !== systemId || (seen.timeline ?? 0) <= timeline) return;
  throw new HoldfastError(
    'ledger_changed',
    `The database server is on timeline ${timeline}, and this agent has worked with ${seen.timeline}: another server took over from it.`,
    { data: { found: timeline, witnessed: seen.timeline ?? 0 } },
  );
}

/** @throws ledger_changed where the ledger's file is gone: opening it would make an empty one in its place */
export function assertNotGone(files: WitnessFiles, exists: boolean, name: string): void {
  if (exists || !isUsed(files)) return;
  throw new HoldfastError(
    'ledger_changed',
    `There is no ledger ${name}, and this agent has worked with it. Put it back or restore it. ` +
      `If all that was in it may be forgotten, move ${files.dir} away first.`,
    { data: { reason: 'case_missing' } },
  );
}

function assertKnown(
  files: WitnessFiles,
  seen: SeenLedger | null,
  found: SeenLedger,
  accepting?: string,
): void {
  const isOther = seen !== null && seen.incarnation !== found.incarnation && isUsed(files);
  if (isOther && accepting !== found.incarnation) {
    throw new HoldfastError(
      'ledger_changed',
      `The ledger is ${found.incarnation}, and this agent has worked with ${seen.incarnation}. If it was restored on purpose, ` +
        `\`holdfast witness accept ${found.incarnation}\` takes it, and quarantines each case that it lacks or holds at an earlier state.`,
      { data: { found: found.incarnation, witnessed: seen.incarnation } },
    );
  }
  if (accepting !== undefined && accepting !== found.incarnation) {
    throw new HoldfastError(
      'ledger_changed',
      `The ledger is ${found.incarnation}, not ${accepting}; nothing was changed.`,
      { data: { found: found.incarnation } },
    );
  }
}

/** Journals of agents that began before it was noted say so by themselves. */
function isUsed(files: WitnessFiles): boolean {
  return files.ledger()?.used === true || files.size().bytes > 0;
}

function usedAs(before: SeenLedger | null): Pick<SeenLedger, 'used'> {
  return before?.used === true ? { used: true } : {};
}

function seenOn(incarnation: string, server: Server | null): SeenLedger {
  return server === null
    ? { incarnation }
    : { incarnation, system: server.systemId, timeline: server.timeline };
}

function isSameLedger(a: SeenLedger, b: SeenLedger): boolean {
  return a.incarnation === b.incarnation && a.system === b.system && a.timeline === b.timeline;
}

/** Each of these is followed by something outside that only the ledger remembers: an answer, a release, a call to another system. */
function witnessed(ledger: LedgerStore, files: WitnessFiles, logger: Logger): LedgerStore {
  let failing = false;
  let used = files.ledger()?.used === true;

  /** Decisions on cases that are not known here leave no journal line, and those of closed cases are merged away. */
  async function use(): Promise<void> {
    if (used) return;
    used = true;
    const kept = files.ledger();
    if (kept !== null) await files.keepLedger({ ...kept, used: true });
  }

  async function see(ref: Seen['ref'], epoch: number, receipt?: string): Promise<void> {
    await kept(async () => {
      await use();
      const head = await ledger.auditHead(ref);
      if (head !== null) {
        await files.append({ ref, epoch, ...head, ...(receipt === undefined ? {} : { receipt }) });
      }
    });
  }

  async function kept(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      failing = false;
    } catch (err) {
      // It has committed: to withhold the answer would help nobody.
      if (!failing) logger.error({ err }, 'what was committed cannot be witnessed');
      failing = true;
    }
  }

  return {
    ...ledger,
    async openCase(command) {
      const row = await ledger.openCase(command);
      await see(row.ref, row.epoch);
      return row;
    },
    async accept(command) {
      const result = await ledger.accept(command);
      if (result.outcome === 'accepted') await see(command.ref, result.work.epoch, receiptIn(command.answer));
      return result;
    },
    async reject(command) {
      const result = await ledger.reject(command);
      if (result.outcome === 'stored') await kept(use);
      return result;
    },
    async deferOffer(command) {
      const result = await ledger.deferOffer(command);
      if (result.outcome === 'stored') await kept(use);
      return result;
    },
    async recoverCase(command) {
      const row = await ledger.recoverCase(command);
      await see(row.ref, row.epoch);
      return row;
    },
    async changeOwner(command) {
      const row = await ledger.changeOwner(command);
      await see(row.ref, row.epoch);
      return row;
    },
    async recordReceipt(command) {
      const offer = await ledger.recordReceipt(command);
      await see(offer.ref, offer.epoch + 1, command.receipt);
      return offer;
    },
    async releaseOffer(transfer) {
      const offer = await ledger.releaseOffer(transfer);
      await see(offer.ref, transfer.newEpoch, transfer.receipt);
      return offer;
    },
    async settleReceipt(command) {
      const outcome = await ledger.settleReceipt(command);
      const { ref, newEpoch, receipt } = command.transfer;
      if (outcome === 'released' || outcome === 'learned') await see(ref, newEpoch, receipt);
      return outcome;
    },
    async withdraw(command) {
      const result = await ledger.withdraw(command);
      const { epochBefore } = result.decision;
      // The sender may go elsewhere once it is told. Where the case is not known here there is nothing to compare.
      if (result.outcome === 'stored')
        await (epochBefore === null ? kept(use) : see(command.ref, epochBefore));
      return result;
    },
    async startEffect(command) {
      const effect = await ledger.startEffect(command);
      await see(effect.ref, effect.epoch);
      return effect;
    },
    async close() {
      files.close();
      await ledger.close();
    },
  };
}

/** Where the ledger is older than what was seen of the case; `closed` where all is well and nothing more can happen to it. */
async function compare(
  ledger: LedgerStore,
  seen: Seen,
): Promise<{ readonly regression: Omit<Quarantine, 'at'> | null; readonly closed: boolean }> {
  const { ref } = seen;
  const [row, hash] = await Promise.all([ledger.getCase(ref), ledger.auditHash(ref, seen.seq)]);
  const fine =
    row !== null && row.epoch >= seen.epoch && (hash === seen.hash || (await isGivenUp(ledger, seen)));
  if (fine) return { regression: null, closed: row.status === 'closed' };
  const head = await ledger.auditHead(ref);
  const reason =
    row === null
      ? 'case_missing'
      : row.epoch < seen.epoch
        ? 'epoch_regressed'
        : hash === null
          ? 'audit_regressed'
          : 'audit_forked';
  const { epoch, seq, receipt } = seen;
  const witness = { epoch, seq, hash: seen.hash, ...(receipt === undefined ? {} : { receipt }) };
  const found = { ...(row === null ? {} : { epoch: row.epoch }), ...(head ?? {}) };
  return { regression: { ref, reason, witnessed: witness, found }, closed: false };
}

/**
 * A person has let the case go on without it: above every epoch up to this one; or, where other ledgers go on and none is set here, at
 * this epoch, from which they knew all of this to be lost.
 */
async function isGivenUp(ledger: LedgerStore, { ref, epoch, seq }: Seen): Promise<boolean> {
  const entries = await ledger.readAudit(ref);
  return entries.some(({ type, epochAfter = 0, data }) => {
    if (type !== 'case_recovered' || epochAfter < epoch) return false;
    const lost = data?.lost as Quarantine['witnessed'] | undefined;
    return epochAfter > epoch || (lost?.epoch === epoch && Number(lost.seq) >= seq);
  });
}

function receiptIn(answer: string): string | undefined {
  const { receipt } = JSON.parse(answer);
  return typeof receipt === 'string' ? receipt : undefined;
}

function fieldsOf({ ref, reason, witnessed: seen, found }: Omit<Quarantine, 'at'>) {
  const { receipt: _, ...rest } = seen;
  return { ...ref, reason, witnessed: rest, found };
}
