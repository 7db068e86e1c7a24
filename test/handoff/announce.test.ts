import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger, systemClock } from '../../src/core/index.js';
import { type Announcer, createAnnouncer, createLease, type Lease } from '../../src/handoff/index.js';
import type { KindDefinition, LedgerStore } from '../../src/ledger/index.js';
import { openSqliteLedger } from '../../src/storage/index.js';
import { createNodeIdentity, createPeerDirectory, generateNodeKey } from '../../src/trust/index.js';
import { temporaryFolder } from '../cli/support.js';

const TRIAGE = 'https://triage.example';
const BILLING = 'https://billing.example';
const CONTRACT = 'refund-dispute/1';
const KIND: KindDefinition = {
  kind: 'refund',
  systemOfRecord: 'payments',
  mode: 'separate',
  contracts: [CONTRACT],
  policy: { caps: {}, prohibitions: [], operations: {} },
  limits: { maxHops: 2, maxTasks: 5, acceptWithinMs: 3_600_000, effectLimitMs: 300_000 },
};

describe('an agent that asks its peer what it holds', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let ledger: LedgerStore;
  let lease: Lease;
  let announcer: Announcer;
  /** What the peer answers to the n-th message. */
  let answer: (n: number) => { readonly receipts: readonly string[]; readonly next?: string };
  let asked: number;

  beforeEach(async () => {
    folder = temporaryFolder();
    ledger = await openSqliteLedger({ file: `${folder.path}/ledger.db` });
    lease = createLease({ ledger, agent: TRIAGE, logger: silentLogger, leaseMs: 400, beatMs: 10_000 });
    asked = 0;
    const control = async (_peer: string, request: object) => {
      asked += 1;
      return { ...request, ...answer(asked) };
    };
    announcer = createAnnouncer({
      identity: await createNodeIdentity({
        url: TRIAGE,
        privateJwk: await generateNodeKey(),
        clock: systemClock,
      }),
      ledger,
      tenants: ['default'],
      peers: createPeerDirectory([
        { url: BILLING, key: 'x'.repeat(43), tenant: 'default', contracts: [CONTRACT], skills: ['billing'] },
      ]),
      keys: { keysOf: async () => [] },
      client: { control } as unknown as Parameters<typeof createAnnouncer>[0]['client'],
      lease,
      logger: silentLogger,
      backoffMs: [1, 2],
      runs: () => false,
    });
  });
  afterEach(async () => {
    await announcer.stop();
    await lease.end();
    await ledger.close();
    folder.remove();
  });

  const states = async () => (await ledger.listAwaited(TRIAGE)).map(({ state }) => state);

  it('[R-166] is led on by no peer that promises ever more and gives nothing new', async () => {
    await ledger.putKind('default', KIND);
    for (const receipts of [[], ['no.thing.new']]) {
      answer = (n) => ({ receipts, next: `page-${n}` });
      await announcer.begin();
      await announcer.ask();
      expect(asked).toBeLessThan(8);
      expect(await states()).toEqual(['waiting']);
    }
    answer = () => ({ receipts: [] });
    await expect
      .poll(async () => {
        await announcer.ask();
        return states();
      })
      .toEqual(['answered']);
  });

  it('begins an incarnation though the lease of its process has run out meanwhile', async () => {
    answer = () => ({ receipts: [] });
    await ledger.putKind('default', KIND);
    await lease.begin();
    await pause(500);
    await announcer.begin();
    expect(await states()).toEqual(['waiting']);
  });

  it('[R-166] asks, too, where the first kind that other ledgers have a part in comes later', async () => {
    answer = () => ({ receipts: [] });
    await announcer.begin();
    await announcer.ask();
    expect(await ledger.getIncarnation(TRIAGE)).toBeNull();
    await ledger.putKind('default', KIND);
    await announcer.ask();
    expect(await ledger.getIncarnation(TRIAGE)).not.toBeNull();
    expect(await states()).toEqual(['answered']);
  });
});
