/** A contract of one's own, with the kind that goes with it, between two agents configured in code. */
import assert from 'node:assert/strict';
import { mkdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { accept, isHoldfastError, openHoldfast, parseCaseFile, reject } from '../src/index.js';
import { enterEmptyFolder, freeUrl } from './support/agents.js';

const files = join(import.meta.dirname, 'own-contract');
const folder = await enterEmptyFolder();
const shared = parse(await readFile(join(files, 'replacement.yaml'), 'utf8'));
const agents = { support: await freeUrl(), warehouse: await freeUrl() };

/** The keys of holdfast.yaml, as an object. */
function configure(agent: keyof typeof agents, peers: object[]) {
  const { host } = new URL(agents[agent]);
  return {
    ...shared,
    receives: agent === 'warehouse' ? shared.receives : [],
    agent,
    url: agents[agent],
    ledger: '../ledger.db',
    listen: { port: Number(host.split(':')[1]) },
    network: { loopback: Object.values(agents).map((url) => new URL(url).host) },
    log: { level: 'error' },
    peers,
  };
}

/** The first opening makes the key; its thumbprint is what the other side has to know. */
async function introduce(agent: keyof typeof agents) {
  await mkdir(agent);
  await symlink(join(files, 'replacement.mjs'), join(agent, 'replacement.mjs'));
  const once = await openHoldfast({ dir: agent, config: configure(agent, []) });
  await once.close();
  return {
    url: once.url,
    key: once.identity.thumbprint,
    contracts: ['replacement/1'],
    skills: ['warehouse'],
  };
}

const known = { support: await introduce('support'), warehouse: await introduce('warehouse') };
const support = await openHoldfast({ dir: 'support', config: configure('support', [known.warehouse]) });
const warehouse = await openHoldfast({ dir: 'warehouse', config: configure('warehouse', [known.support]) });

const stock = new Map([['RK-0007', 1]]);
const refused: string[] = [];
warehouse.onHandoff('replacement/1', {
  check: ({ facts }) =>
    stock.has(String(facts.article)) ? accept() : reject('out_of_stock', 'There is none left.'),
  async work({ effect, done }) {
    const forbidden = { key: 'refund-1', operation: 'refund', perform: async () => {} };
    await effect(forbidden).catch((error) => refused.push(error.code));
    const { result } = await effect({ key: 'ship-1', operation: 'ship', perform: async () => 'parcel_1' });
    await done({ decision: 'shipped', ...(result === null ? {} : { parcel: result }) });
  },
});
await warehouse.start();
await support.start();

const fact = (key: string, value: unknown, source = 'shop') => ({ key, value, source, verified: true });
const fileOf = (caseId: string, article: string, damage = 'wet') => ({
  case_id: caseId,
  kind: 'damaged-goods',
  goal: 'Ship the article again',
  facts: [
    fact('order_id', 'ord_17'),
    fact('article', article),
    fact('damage', damage, 'customer'),
    fact('delivery_address', { street: 'Harbour Road 5', city: 'Hull' }, 'customer'),
    fact('customer_mood', 'angry', 'support'),
  ],
  constraints: { deadline: '2099-01-01T00:00:00Z', prohibitions: ['refund'] },
});

async function handOff(caseId: string, article: string, damage?: string) {
  const { ref } = await support.openCase({ caseId, kind: 'damaged-goods' });
  const caseFile = parseCaseFile(Buffer.from(JSON.stringify(fileOf(caseId, article, damage))));
  const input = { ref, caseFile, evidence: [], to: warehouse.url, contract: 'replacement/1' };
  return support.handOff(input);
}

const done = await handOff('CASE-1', 'RK-0007');
assert.equal(done.state, 'accepted');
assert.deepEqual(done.offer.withheld, [{ path: 'facts.customer_mood', rule: 'not_in_contract' }]);

const none = await handOff('CASE-2', 'RK-0008');
assert.deepEqual(none.state === 'rejected' && none.code, 'out_of_stock');

const bare = await handOff('CASE-3', 'RK-0007', 'broken');
assert.deepEqual(bare.state === 'rejected' && bare.code, 'evidence_empty');

// What the contract finds wrong is found at the sender, before anything leaves.
await assert.rejects(handOff('CASE-4', 'seven'), (error) => {
  assert.ok(isHoldfastError(error));
  assert.equal(error.code, 'fact_invalid');
  assert.equal(error.fields[0]?.problem, 'must be an article number such as RK-0007');
  return true;
});

await warehouse.close(); // waits for the work
await support.close();
assert.deepEqual(refused, ['operation_prohibited']);
await folder.remove();
console.log('handed over under a contract of its own; what it does not allow was refused');
