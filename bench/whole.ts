import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CONTRACT_MODULE, core, holdfast, trust } from './built.js';
import { type Bounds, drive, type Rate } from './measure.js';
import { freeUrl, startNode } from './nodes.js';
import { CONTRACT, caseFileOf, KIND, kindConfig, SKILL } from './offers.js';

/**
 * The whole path of a handover as a user runs it: `handOff` in this process builds the envelope and commits the intent, a node in another
 * process accepts over HTTP, and this one verifies and stores the receipt.
 */
export async function measureWhole(
  folder: string,
  ledger: string,
  levels: readonly number[],
  bounds: Bounds,
): Promise<{ readonly inFlight: number; readonly rate: Rate }[]> {
  const dir = join(folder, 'triage');
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const [url, to] = [await freeUrl(), await freeUrl()];
  const privateJwk = await trust.generateNodeKey();
  writeFileSync(join(dir, 'node.key.json'), JSON.stringify(privateJwk), { mode: 0o600 });
  const { thumbprint } = await trust.createNodeIdentity({ url, privateJwk, clock: core.systemClock });
  const node = await startNode({
    dir: join(folder, 'billing'),
    url: to,
    ledger,
    sender: { url, thumbprint },
  });
  const agent = await holdfast.openHoldfast({
    dir,
    config: {
      agent: 'triage',
      url,
      ledger,
      listen: { port: Number(new URL(url).port) },
      contracts: [CONTRACT_MODULE],
      peers: [{ url: to, key: JSON.parse(node.ready).thumbprint, contracts: [CONTRACT], skills: [SKILL] }],
      kinds: { [KIND]: kindConfig },
      network: { loopback: [new URL(to).host] },
      log: { level: 'error' },
    },
  });
  try {
    await agent.start();
    const measured = [];
    for (const inFlight of levels) {
      const open = (index: number) => agent.openCase({ caseId: `W-${inFlight}-${index}`, kind: KIND });
      await drive(64, { ...bounds, maxMs: 60_000 }, open);
      const rate = await drive(inFlight, bounds, async (index) => {
        const caseId = `W-${inFlight}-${index}`;
        const caseFile = caseFileOf(caseId);
        const { state } = await agent.handOff({
          ref: agent.caseRef(caseId),
          caseFile,
          to,
          contract: CONTRACT,
        });
        if (state !== 'accepted') throw new Error(`not accepted: ${state}`);
      });
      measured.push({ inFlight, rate });
    }
    return measured;
  } finally {
    await agent.close();
    await node.stop();
  }
}
