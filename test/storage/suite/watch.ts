import { describe, expect, it } from 'vitest';
import { BILLING, ledgerWithCase, type OpenLedger, TRIAGE } from './fixtures.js';

const watch = (watchId = 'watch_1') => ({
  tenant: 'acme',
  watchId,
  agent: TRIAGE,
  peer: BILLING,
  taskId: 'task_1',
  tokenHash: 'a'.repeat(64),
  secret: 'c2VjcmV0',
});

export function watchSuite(open: OpenLedger): void {
  describe('watches', () => {
    it('[R-144] name the task at the peer that they are of, for as long as they last', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const made = await ledger.addWatch({ ...watch(), lastsMs: 1000 });
      expect(made).toEqual({ ...watch(), createdAt: clock.in(0), until: clock.in(1000) });
      expect(await ledger.getWatch('watch_1')).toEqual(made);
      expect(await ledger.getWatch('watch_2')).toBeNull();
      clock.advance(1000);
      expect(await ledger.getWatch('watch_1')).toBeNull();
    });

    it('[R-145][R-175] remember what was heard, each by itself, and are bounded', async () => {
      const { ledger } = await ledgerWithCase(open);
      for (const id of ['watch_1', 'watch_2']) await ledger.addWatch({ ...watch(id), lastsMs: 1000 });
      await Promise.all([ledger.hear('watch_1', 'n.0'), ledger.hear('watch_1', 'n.0')]);
      expect(await ledger.isHeard('watch_1', 'n.0')).toBe(true);
      expect(await ledger.isHeard('watch_2', 'n.0')).toBe(false);
      await Promise.all(Array.from({ length: 1000 }, (_, n) => ledger.hear('watch_1', `n.${n + 1}`)));
      expect(await ledger.isHeard('watch_1', 'n.1000')).toBe(true);
      // Those heard at the same moment may not see each other; the next one makes room.
      await ledger.hear('watch_1', 'n.1001');
      expect(await ledger.isHeard('watch_1', 'n.0')).toBe(false);
      await ledger.hear('watch_none', 'n.1');
      expect(await ledger.isHeard('watch_none', 'n.1')).toBe(false);
    });

    it('go when they are removed, or when their time is over', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      for (const id of ['watch_1', 'watch_2', 'watch_3']) {
        await ledger.addWatch({ ...watch(id), lastsMs: id === 'watch_3' ? 5000 : 1000 });
        await ledger.hear(id, 'n.1');
      }
      await ledger.removeWatch('other', 'watch_1');
      expect(await ledger.getWatch('watch_1')).not.toBeNull();
      await ledger.removeWatch('acme', 'watch_1');
      await ledger.removeWatch('acme', 'watch_1');
      expect(await ledger.getWatch('watch_1')).toBeNull();
      expect(await ledger.isHeard('watch_1', 'n.1')).toBe(false);
      clock.advance(1000);
      await ledger.pruneWatches('acme', BILLING);
      expect(await ledger.isHeard('watch_2', 'n.1')).toBe(true);
      await ledger.pruneWatches('acme', TRIAGE);
      expect(await ledger.isHeard('watch_2', 'n.1')).toBe(false);
      expect(await ledger.isHeard('watch_3', 'n.1')).toBe(true);
    });
  });
}
