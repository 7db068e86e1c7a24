import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareWithLedger, replay, verifyChain } from '../../src/audit/index.js';
import { isHoldfastError } from '../../src/core/index.js';
import type {
  CaseSnapshot,
  ChangeOwnerCommand,
  KindDefinition,
  LedgerStore,
} from '../../src/ledger/index.js';
import { createMemoryLedger, openPostgresLedger, openSqliteLedger } from '../../src/storage/index.js';
import { createLedgerDatabase } from '../postgres/ledger.js';
import {
  acceptance,
  BILLING,
  delivery,
  intend,
  KIND,
  LEGAL,
  ledgerWithCase,
  ref,
  rejection,
  type TestClock,
  TRIAGE,
} from '../storage/suite/fixtures.js';
import {
  CAP,
  EFFECT_LIMIT_MS,
  FIRST_EPOCH,
  Oracle,
  type OracleDelivery,
  type OracleOffer,
} from './oracle.js';

const AGENTS: readonly string[] = [TRIAGE, BILLING, LEGAL];
/** Two at each node. */
const personAt = (index: number, node: string): string => `person:${index === 0 ? 'ann' : 'bob'}@${node}`;
const PEOPLE = AGENTS.flatMap((agent) => [personAt(0, agent), personAt(1, agent)]);
const MODEL_KIND: KindDefinition = {
  ...KIND,
  policy: {
    caps: { refund: { amount: `${CAP}.00`, currency: 'EUR' } },
    prohibitions: [],
    operations: Object.fromEntries([...AGENTS, ...PEOPLE].map((agent) => [agent, ['refund']])),
  },
  limits: { ...KIND.limits, effectLimitMs: EFFECT_LIMIT_MS },
};
const UNBOUND = { caps: {}, prohibitions: [], operations: null };
const ACCEPT_WITHIN_MS = 60_000;

interface Real {
  readonly ledger: LedgerStore;
  readonly clock: TestClock;
  readonly outcomes: Set<string>;
  seen: CaseSnapshot;
}

type Command = fc.AsyncCommand<Oracle, Real>;

const OUTCOMES = ['accepted', 'stored', 'decided', 'conflict'] as const;

/** Runs a write on both sides, compares what they say, and then everything that must always hold. */
function command(
  name: string,
  act: (oracle: Oracle, real: Real) => { expected: string; actual: Promise<unknown> },
  check: (oracle: Readonly<Oracle>) => boolean = () => true,
): Command {
  return {
    check,
    toString: () => name,
    async run(oracle, real) {
      const { expected, actual } = act(oracle, real);
      expect(await outcomeOf(actual), name).toBe(expected);
      real.outcomes.add(expected);
      await checkInvariants(oracle, real);
    },
  };
}

async function outcomeOf(actual: Promise<unknown>): Promise<string> {
  try {
    const result = (await actual) as { outcome?: string | null; code?: string } | undefined;
    if (result?.outcome === 'refused') return result.code ?? '';
    return OUTCOMES.find((outcome) => outcome === result?.outcome) ?? 'ok';
  } catch (error) {
    if (isHoldfastError(error)) return error.code;
    throw error;
  }
}

async function checkInvariants(oracle: Oracle, real: Real): Promise<void> {
  const before = real.seen;
  const now = await real.ledger.snapshot(ref());
  real.seen = now;

  // H1, H2: one owner, and one epoch more for each acceptance and each change of owner by a person.
  const accepted = now.decisions.filter((decision) => decision.verdict === 'accepted');
  expect(now.case).toMatchObject({
    owner: oracle.owner,
    epoch: oracle.epoch,
    status: oracle.closed ? 'closed' : 'open',
  });
  expect(now.case?.epoch).toBe(FIRST_EPOCH + accepted.length + oracle.changes);

  // H3: what was written, the owner of its epoch wrote, and no refused write left anything.
  for (const note of now.notes) expect(note.writer).toBe(oracle.owners[note.epoch]);
  for (const effect of now.effects) expect(effect.owner).toBe(oracle.owners[effect.epoch]);
  expect(now.notes).toHaveLength(oracle.notes);

  // H4: decisions are final and stay; each acceptance has one work item.
  expectToGoOn(before.decisions, now.decisions);
  expect(now.decisions).toHaveLength(oracle.decisions.size);
  expect(now.work.map((item) => item.key)).toEqual(accepted.map((decision) => decision.key));
  expect(now.work.map((item) => item.state)).toEqual(oracle.work);
  expect(now.offers.filter((offer) => offer.closedAt === null)).toHaveLength(oracle.offer === null ? 0 : 1);

  // H5: one effect per key; what is done stays done; the cap holds.
  expect(now.effects.map((effect) => effect.key)).toEqual([...oracle.effects.keys()]);
  for (const effect of before.effects.filter((row) => row.state === 'done')) {
    expect(JSON.stringify(now.effects)).toContain(JSON.stringify(effect));
  }
  const spent = now.effects.filter((effect) => effect.state !== 'failed');
  expect(spent.reduce((sum, effect) => sum + Number(effect.amount?.amount), 0)).toBeLessThanOrEqual(CAP);

  // H7: nothing that was there is gone.
  expect(now.offers.length).toBeGreaterThanOrEqual(before.offers.length);
  expect(now.work.length).toBeGreaterThanOrEqual(before.work.length);

  // H8: the chain goes on (its hashes are checked when the history ends), and tells the same story.
  expectToGoOn(before.audit, now.audit);
  expect(compareWithLedger(replay(now.audit), now)).toEqual([]);
}

/** By text: there are thousands of these, and a deep comparison is slow. */
function expectToGoOn(before: readonly unknown[], now: readonly unknown[]): void {
  expect(JSON.stringify(now.slice(0, before.length))).toBe(JSON.stringify(before));
}

const text = fc.constantFrom('please refund', 'other bytes');
/** Mostly the current epoch: -1 and 1 are a stale one and one from the future. */
const offset = fc.constantFrom(0, 0, 0, 0, 0, 0, -1, 1);
/** Mostly the owner, as index from the one who owns. */
const role = fc.constantFrom(0, 0, 0, 0, 0, 0, 1, 2);
const effectKey = fc.constantFrom('r1', 'r2', 'r3');

const writer = (oracle: Oracle, index: number): string => (index === 0 ? oracle.owner : agent(oracle, index));

/** As index from the owner's. */
const agent = (oracle: Oracle, index: number): string =>
  AGENTS[(AGENTS.indexOf(Oracle.nodeOf(oracle.owner)) + index) % AGENTS.length] ?? TRIAGE;

/** Who sends an offer, and for whom. */
function senderOf(writer: string): { sender: string; person: string | null } {
  const sender = Oracle.nodeOf(writer);
  return { sender, person: sender === writer ? null : writer };
}

const approvedBy = (person: string | null) =>
  person === null ? {} : { approval: { person, digest: 'a'.repeat(64) } };

const write = (oracle: Oracle, index: number, epochOffset: number) => ({
  ref: ref(),
  writer: writer(oracle, index),
  epoch: oracle.epoch + epochOffset,
});

const offerCommand = fc.record({ role, offset, to: role, text }).map((given) =>
  command(`offer ${JSON.stringify(given)}`, (oracle, { ledger, clock }) => {
    const by = write(oracle, given.role, given.offset);
    const to = agent(oracle, given.role + 1 + (given.to % 2));
    const { sender, person } = senderOf(by.writer);
    const attempt = oracle.next(sender, by.epoch);
    const actual = ledger
      .intendOffer(intend(clock, { ...by, attempt, toAgent: to, text: given.text, ...approvedBy(person) }))
      .then((offer) => ledger.markOffered(offer.key));
    const offer: OracleOffer = {
      sender,
      person,
      to,
      epoch: by.epoch,
      attempt,
      text: given.text,
      acceptBy: oracle.now + ACCEPT_WITHIN_MS,
      effectStarted: false,
    };
    return { expected: oracle.expectOffer(offer), actual };
  }),
);

/** A delivery of the open offer, of any earlier attempt, or of one that no row stands behind. */
const target = fc.record({ open: fc.boolean(), role, offset, attempt: fc.integer({ min: 1, max: 3 }), text });

function aim(
  oracle: Oracle,
  given: { open: boolean; role: number; offset: number; attempt: number; text: string },
): OracleDelivery {
  if (given.open && oracle.offer !== null) return oracle.offer;
  const { writer: by, epoch } = write(oracle, given.role, given.offset);
  const { sender, person } = senderOf(by);
  const known = oracle.offers.get(Oracle.key(sender, epoch, given.attempt));
  const to = known?.to ?? agent(oracle, given.role + 1);
  const acceptBy = known?.acceptBy ?? oracle.now + ACCEPT_WITHIN_MS;
  return {
    ...{ sender, epoch, to, acceptBy },
    person: known?.person ?? person,
    attempt: given.attempt,
    text: given.text,
  };
}

const acceptCommand = target.map((given) =>
  command(`accept ${JSON.stringify(given)}`, (oracle, { ledger, clock }) => {
    const aimed = aim(oracle, given);
    const { sender, person, epoch, attempt, text, to, acceptBy } = aimed;
    const actual = ledger.accept(
      acceptance(clock, {
        sender,
        epoch,
        attempt,
        text,
        toAgent: to,
        acceptBy: clock.in(acceptBy - oracle.now),
        constraints: UNBOUND,
        ...approvedBy(person),
      }),
    );
    return { expected: oracle.expectAccept(aimed), actual };
  }),
);

const rejectCommand = target.map((given) =>
  command(`reject ${JSON.stringify(given)}`, (oracle, { ledger, clock }) => {
    const { sender, epoch, attempt, text } = aim(oracle, given);
    const actual = ledger.reject(rejection(clock, 'evidence_empty', { sender, epoch, attempt, text }));
    return { expected: oracle.expectReject(sender, epoch, attempt, text), actual };
  }),
);

const voidCommand = fc.record({ target, by: fc.constantFrom(0, 0, 1) }).map((given) =>
  command(`void ${JSON.stringify(given)}`, (oracle, { ledger }) => {
    const { sender, epoch, attempt } = aim(oracle, given.target);
    const by = given.by === 0 ? sender : writer(oracle, given.by);
    const { key } = delivery({ sender, epoch, attempt });
    const actual = ledger.voidOffer({ key, writer: by, reason: 'model', expired: false, answer: '{}' });
    return { expected: oracle.expectVoid(by, sender, epoch, attempt), actual };
  }),
);

const FROM_PERSON = ['takeover', 'reassignment', 'return'] as const;
const FROM_AGENT = ['takeover', 'escalation', 'escalation'] as const;

const changeCommand = fc
  .record({
    which: fc.constantFrom(0, 1, 2),
    fitting: fc.constantFrom(true, true, true, true, false),
    person: fc.constantFrom(0, 0, 1),
    elsewhere: fc.constantFrom(false, false, false, false, true),
    blind: fc.constantFrom(false, false, false, true),
    offset,
  })
  .map((given) =>
    command(`change ${JSON.stringify(given)}`, (oracle, { ledger, outcomes }) => {
      const node = given.elsewhere ? writer(oracle, 1) : Oracle.nodeOf(oracle.owner);
      // The owner and somebody else, or the other way round.
      const who = oracle.owner === personAt(1, node) ? 1 - given.person : given.person;
      const [one, other] = [personAt(who, node), personAt(1 - who, node)];
      const fromPerson = oracle.owner.startsWith('person:') === given.fitting;
      const changes = fromPerson ? FROM_PERSON : FROM_AGENT;
      const { change, actor, to } = {
        takeover: { change: 'takeover', actor: other, to: other } as const,
        escalation: { change: 'escalation', actor: node, to: one } as const,
        reassignment: { change: 'reassignment', actor: one, to: other } as const,
        return: { change: 'return', actor: one, to: node } as const,
      }[changes[given.which] ?? 'takeover'];
      const seen = given.blind ? null : oracle.offer;
      const voids: ChangeOwnerCommand['voids'] = seen && { key: delivery(seen).key, answer: '{}' };
      const epoch = oracle.epoch + given.offset;
      const actual = ledger.changeOwner({ ref: ref(), change, epoch, actor, to, reason: 'model', voids });
      const from = change === 'takeover' ? oracle.owner : actor;
      const expected = oracle.expectChange(from, node, to, epoch, seen);
      if (expected === 'ok') outcomes.add(change);
      return { expected, actual };
    }),
  );

const noteCommand = fc.record({ role, offset }).map((given) =>
  command(`note ${JSON.stringify(given)}`, (oracle, { ledger }) => {
    const by = write(oracle, given.role, given.offset);
    return {
      expected: oracle.expectNote(by.writer, by.epoch),
      actual: ledger.addNote({ ...by, text: 'a note' }),
    };
  }),
);

const startCommand = fc
  .record({ role, offset, key: effectKey, amount: fc.constantFrom(10, 40, 60) })
  .map((given) =>
    command(`start ${JSON.stringify(given)}`, (oracle, { ledger }) => {
      const by = write(oracle, given.role, given.offset);
      const amount = { amount: `${given.amount}.00`, currency: 'EUR' };
      const actual = ledger.startEffect({ ...by, key: given.key, operation: 'refund', amount });
      return { expected: oracle.expectStart(by.writer, by.epoch, given.key, given.amount), actual };
    }),
  );

const settleCommand = fc
  .record({ role, offset, key: effectKey, state: fc.constantFrom('done', 'failed', 'unknown') })
  .map((given) =>
    command(`settle ${JSON.stringify(given)}`, (oracle, { ledger }) => {
      const by = write(oracle, given.role, given.offset);
      const { key, state } = given;
      const actual = ledger.settleEffect({ ...by, key, state, outcome: null });
      return { expected: oracle.expectSettle(by.writer, by.epoch, key, state), actual };
    }),
  );

const workCommand = fc
  .record({ role, offset, back: fc.constantFrom(0, 0, 1), state: fc.constantFrom('done', 'failed') })
  .map((given) =>
    command(`work ${JSON.stringify(given)}`, (oracle, { ledger, seen }) => {
      const by = write(oracle, given.role, given.offset);
      const index = Math.max(0, oracle.work.length - 1 - given.back);
      const workId = seen.work[index]?.id;
      if (workId === undefined) return { expected: 'ok', actual: Promise.resolve() };
      const actual = ledger.settleWork({ ...by, workId, state: given.state, result: null });
      return { expected: oracle.expectWork(by.writer, by.epoch, index, given.state), actual };
    }),
  );

const closeCommand = fc.record({ role, offset }).map((given) =>
  command(
    `close ${JSON.stringify(given)}`,
    (oracle, { ledger }) => {
      const by = write(oracle, given.role, given.offset);
      return { expected: oracle.expectClose(by.writer, by.epoch), actual: ledger.closeCase(by) };
    }, // A closed case has no history: not before it has had some.
    (oracle) => oracle.work.length + oracle.changes > 1,
  ),
);

const tickCommand = fc.constantFrom(1, EFFECT_LIMIT_MS, ACCEPT_WITHIN_MS + 1).map((ms) =>
  command(`tick ${ms}`, (oracle, { clock }) => {
    clock.advance(ms);
    oracle.now += ms;
    return { expected: 'ok', actual: Promise.resolve() };
  }),
);

const commands = fc.commands(
  [
    offerCommand,
    offerCommand,
    acceptCommand,
    acceptCommand,
    acceptCommand,
    rejectCommand,
    voidCommand,
    changeCommand,
    noteCommand,
    startCommand,
    startCommand,
    settleCommand,
    settleCommand,
    workCommand,
    closeCommand,
    tickCommand,
  ],
  { maxCommands: 40, size: 'max' },
);

/** What the longest batch of histories, of which the others are the first part, must have come across, or it has shown little. */
const COVERED = [
  ...['ok', 'accepted', 'stored', 'decided', 'conflict'],
  ...['epoch_stale', 'epoch_ahead', 'not_owner', 'case_closed', 'case_busy'],
  ...['offer_open', 'offer_unknown', 'offer_closed', 'offer_expired', 'case_changed'],
  ...['effect_in_flight', 'effect_duplicate', 'effect_unknown', 'effect_settled', 'cap_exceeded'],
  'work_settled',
  ...['takeover', 'escalation', 'reassignment', 'return'],
];

async function play(
  histories: number,
  open: (clock: TestClock, run: number) => Promise<LedgerStore>,
  covered: readonly string[] = [],
): Promise<void> {
  const outcomes = new Set<string>();
  let run = 0;
  const property = fc.asyncProperty(commands, async (history: Iterable<Command>) => {
    run += 1;
    const { ledger, clock } = await ledgerWithCase((clock) => open(clock, run));
    await ledger.putKind('acme', MODEL_KIND, { replace: true });
    const seen = await ledger.snapshot(ref());
    await fc.asyncModelRun(
      () => ({ model: new Oracle(TRIAGE), real: { ledger, clock, outcomes, seen } }),
      history,
    );
    const audit = await ledger.readAudit(ref());
    expect(verifyChain(audit)).toEqual({ ok: true, entries: audit.length });
    await ledger.close();
  });
  await fc.assert(property, { numRuns: histories, seed: 20_260_302 });
  expect(covered.filter((outcome) => !outcomes.has(outcome))).toEqual([]);
}

describe('any history', () => {
  it(
    '[R-062][R-072][R-073][R-075][R-076][R-079][R-082][R-083] keeps H1 to H5 and H8, in memory',
    () => play(300, async (clock) => createMemoryLedger({ clock }), COVERED),
    60_000,
  );

  it('[R-062][R-072][R-073][R-075][R-076][R-079][R-082][R-083] keeps H1 to H5 and H8, in SQLite', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
    try {
      await play(60, (clock, run) => openSqliteLedger({ file: join(folder, `${run}.db`), clock }));
    } finally {
      rmSync(folder, { recursive: true });
    }
  }, 60_000);

  it('[R-062][R-072][R-073][R-075][R-076][R-079][R-082][R-083] keeps H1 to H5 and H8, in PostgreSQL', async () => {
    const database = await createLedgerDatabase();
    try {
      await play(60, async (clock) => {
        await database.empty();
        return openPostgresLedger({ url: database.url, clock });
      });
    } finally {
      await database.drop();
    }
  }, 120_000);
});
