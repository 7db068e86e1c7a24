import { join } from 'node:path';
import { type Holdfast, type OpenOptions, openHoldfast } from '../../src/index.js';
import { freePort, temporaryFolder } from '../cli/support.js';

const CONTRACT = 'refund-dispute/1';
const SKILL = 'billing';

export interface Receiver {
  readonly url: string;
  readonly thumbprint: string;
  readonly node: Holdfast;
  close(): Promise<void>;
}

interface Peer {
  readonly url: string;
  readonly thumbprint: string;
  readonly hostAndPort: string;
  /** Contracts that may pass; the usual one where absent. */
  readonly contracts?: readonly string[];
}

/** A node as its operator would set it up for peers that are not Holdfast nodes. */
export async function startReceiver(peers: readonly Peer[], options: OpenOptions = {}): Promise<Receiver> {
  const folder = temporaryFolder();
  const port = await freePort();
  const node = await openHoldfast({
    dir: join(folder.path, 'billing'),
    config: {
      agent: 'billing',
      url: `http://127.0.0.1:${port}`,
      listen: { port },
      contracts: [CONTRACT],
      receives: [CONTRACT],
      peers: peers.map(({ url, thumbprint, contracts = [CONTRACT] }) => ({
        url,
        key: thumbprint,
        contracts,
        skills: [SKILL],
      })),
      kinds: {
        refund: {
          system_of_record: 'payments',
          contracts: [CONTRACT],
          policy: { caps: { refund: '100.00 EUR' }, operations: { '*': ['refund'] } },
        },
      },
      network: { loopback: peers.map(({ hostAndPort }) => hostAndPort) },
      log: { level: 'silent' },
    },
    ...options,
  });
  await node.start();
  return {
    url: node.url,
    thumbprint: node.identity.thumbprint,
    node,
    close: async () => {
      await node.close();
      folder.remove();
    },
  };
}
