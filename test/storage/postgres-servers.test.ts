import { afterEach, describe, expect, it } from 'vitest';
import { isHoldfastError } from '../../src/core/index.js';
import type { LedgerStore } from '../../src/ledger/index.js';
import {
  openPostgresLedger,
  type PostgresLedgerOptions,
  type TimelineInfo,
} from '../../src/storage/index.js';
import { type PostgresProxy, startProxy } from '../postgres/proxy.js';
import { type PostgresServer, startPostgres } from '../postgres/server.js';
import { asTriage, KIND, openCase, ref } from './suite/fixtures.js';

const servers: PostgresServer[] = [];
const proxies: PostgresProxy[] = [];
const ledgers: LedgerStore[] = [];

afterEach(async () => {
  await Promise.all(ledgers.splice(0).map((ledger) => ledger.close().catch(() => {})));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
  await Promise.all(servers.splice(0).map((server) => server.remove()));
});

async function serve(): Promise<PostgresServer> {
  const server = await startPostgres();
  servers.push(server);
  return server;
}

async function follow(primary: PostgresServer, synchronous = false): Promise<PostgresServer> {
  const standby = await primary.standby({ synchronous });
  servers.push(standby);
  return standby;
}

async function openWithCase(options: PostgresLedgerOptions): Promise<LedgerStore> {
  const ledger = await openPostgresLedger(options);
  ledgers.push(ledger);
  await ledger.putKind('acme', KIND);
  await openCase(ledger, 'CASE-1');
  return ledger;
}

const note = { ...asTriage, text: 'x' };
const codeOf = (error: unknown) => (isHoldfastError(error) ? error.code : String(error));

async function notesIn(ledger: LedgerStore): Promise<number> {
  const { notes, audit } = await ledger.snapshot(ref());
  expect(audit.filter(({ type }) => type === 'note_added')).toHaveLength(notes.length);
  return notes.length;
}

describe('a server', () => {
  it('that is stopped at once is unavailable, and used again once it is back', async () => {
    const server = await serve();
    const ledger = await openWithCase({ url: server.url(), settleMs: 1000 });
    await ledger.addNote(note);
    await server.stop('immediate');
    const late = codeOf(await ledger.addNote(note).catch((error: unknown) => error));
    expect(['ledger_unavailable', 'outcome_unknown']).toContain(late);
    await expect(ledger.getCase(ref())).rejects.toMatchObject({ code: 'ledger_unavailable' });
    await server.start();
    await ledger.addNote(note);
    expect(await notesIn(ledger)).toBe(2);
  }, 60_000);

  it('that is a standby is refused, and one that took over is used after it was looked at', async () => {
    const primary = await serve();
    const standby = await follow(primary);
    const proxy = await startProxy(primary.url());
    proxies.push(proxy);
    const seen: TimelineInfo[] = [];
    const onTimeline = async (info: TimelineInfo) => void seen.push(info);
    const ledger = await openWithCase({ url: proxy.url, onTimeline });
    expect(seen).toMatchObject([{ timeline: 1, previous: null }]);
    await expect(openPostgresLedger({ url: standby.url() })).rejects.toMatchObject({
      code: 'ledger_unavailable',
    });
    proxy.lead(standby.port);
    await expect(ledger.getCase(ref())).rejects.toMatchObject({ code: 'ledger_unavailable' });
    await standby.promote();
    expect(await ledger.getCase(ref())).toMatchObject({ epoch: 3 });
    expect(seen).toMatchObject([{ timeline: 1 }, { timeline: 2, previous: 1 }]);
    proxy.lead(primary.port);
    await expect(ledger.addNote(note)).rejects.toMatchObject({ code: 'ledger_unavailable' });
    expect(await primary.query('SELECT pg_is_in_recovery() AS standby')).toEqual([{ standby: false }]);
  }, 60_000);

  it('that took over is not used where what it holds is not accepted', async () => {
    const primary = await serve();
    const onTimeline = () => Promise.reject(new Error('older than what was witnessed'));
    await expect(openPostgresLedger({ url: primary.url(), onTimeline })).rejects.toMatchObject({
      code: 'ledger_unavailable',
    });
  }, 60_000);

  it('whose synchronous standby does not answer has made nothing sure', async () => {
    const primary = await serve();
    const ledger = await openWithCase({
      url: primary.url(),
      replicationMs: 300,
      statementMs: 500,
      settleMs: 1500,
    });
    const standby = await follow(primary, true);
    await ledger.addNote(note);
    await standby.stop();
    await expect(ledger.addNote(note)).rejects.toMatchObject({ code: 'outcome_unknown' });
    await standby.start();
    await ledger.addNote(note);
    expect(await notesIn(ledger)).toBeGreaterThanOrEqual(2);
  }, 60_000);
});
