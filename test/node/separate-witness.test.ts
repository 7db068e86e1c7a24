import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../cli/support.js';
import { ENGINES } from './disks.js';
import {
  answered,
  auditProblems,
  type Organisation,
  startOrganisations,
  type World,
} from './organisations.js';

describe.each(ENGINES)('a ledger on %s that was put back, of an agent that has seen more', (engine) => {
  let world: World;
  let triage: Organisation;
  let billing: Organisation;

  beforeEach(async () => {
    world = await startOrganisations(['triage', 'billing'], engine);
    ({ triage, billing } = world);
    await world.open();
  });
  afterEach(() => world.close());

  const at = (one: Organisation, ...argv: string[]) => run(...argv, '--dir', one.disks.dir, '--json');
  const attention = ({ node }: Organisation) => node.ledger.listAttention('default');
  const backupOf = (one: Organisation) => join(one.disks.dir, 'backup.jsonl.gz');
  const backUp = async (one: Organisation) =>
    expect((await at(one, 'db', 'backup', backupOf(one))).exit).toBe(0);

  /** The ledger from its backup, in an empty one; and the word of a person that this is the one from now on. */
  async function restore(one: Organisation): Promise<void> {
    await one.down();
    await one.disks.loseLedger();
    const { restored_as: incarnation } = (await at(one, 'db', 'restore', backupOf(one))).json;
    await expect(one.up()).rejects.toMatchObject({ code: 'ledger_changed' });
    const refused = await at(one, 'case', 'list');
    expect(refused).toMatchObject({ exit: 13, json: { error: { code: 'ledger_changed' } } });
    expect(refused.json.error.message).toContain(`holdfast witness accept ${incarnation}`);
    expect(await at(one, 'witness', 'accept', incarnation)).toMatchObject({
      exit: 0,
      json: { cases: 1, quarantined: 1 },
    });
    await one.up();
    await answered(one.node);
  }

  /** As `attention show` says it, for the owner that was found. */
  async function resolve(one: Organisation, owner: Organisation, more = ''): Promise<void> {
    const { item, commands } = (await at(one, 'attention', 'show', 'CASE-7001')).json;
    const root = one === triage ? '' : ` --root ${triage.url}`;
    expect(item.data).toMatchObject({ witnessed: { epoch: 2 } });
    expect(commands).toEqual([
      `holdfast attention resolve CASE-7001${root} --person ID${more} --owner URL --reason "TEXT"`,
    ]);
    const said = ['attention', 'resolve', 'CASE-7001', '--root', triage.url, '--person', 'ann'];
    const why = ['--reason', 'restored from the backup of last night'];
    const kind = more === '' ? [] : ['--kind', 'refund'];
    expect(await at(one, ...said, ...why, ...kind, '--owner', owner.url)).toMatchObject({
      exit: 0,
      json: { case: { owner: owner.url, epoch: 2 } },
    });
  }

  /** Nothing is held against the case again, by the witness or by what the other side gives back; and it comes back to triage. */
  async function goesOn(one: Organisation): Promise<void> {
    await one.down();
    await one.up();
    await answered(one.node);
    expect(await attention(one)).toEqual([]);
    expect(await world.handOff(billing, triage)).toMatchObject({ state: 'accepted', epoch: 3 });
    for (const each of [triage, billing]) {
      expect(await world.owner(each)).toBe(`${triage.url} at 3`);
      expect(await auditProblems(each, world.ref())).toEqual([]);
      expect((await each.node.ledger.snapshot(world.ref())).transfers).toHaveLength(2);
    }
  }

  it('[R-166] does not act on a case that it has released since, and follows to where the case is', async () => {
    await backUp(triage);
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'accepted', epoch: 2 });
    await restore(triage);
    expect(await attention(triage)).toMatchObject([
      { what: 'case_quarantined', data: { reason: 'epoch_regressed', found: { epoch: 1 } } },
    ]);
    await expect(world.handOff(triage, billing)).rejects.toMatchObject({ code: 'case_quarantined' });
    await resolve(triage, billing);
    await goesOn(triage);
  });

  it('[R-166] does not act on a case that it has accepted since, and goes on with it on the word of a person', async () => {
    await backUp(billing);
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'accepted', epoch: 2 });
    await restore(billing);
    expect(await attention(billing)).toMatchObject([
      { what: 'case_quarantined', data: { reason: 'case_missing' } },
    ]);
    const effect = { ref: world.ref(), epoch: 2, key: 'refund-1', operation: 'refund' };
    await expect(billing.node.startEffect(effect)).rejects.toMatchObject({ code: 'case_quarantined' });
    await resolve(billing, billing, ' --kind KIND');
    await goesOn(billing);
  });

  it('[R-166] does not act on a case of which a peer told it at a start that it has released it', async () => {
    await triage.down();
    await triage.disks.keep();
    await triage.up();
    await answered(triage.node);
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'accepted', epoch: 2 });
    await triage.down();
    await triage.disks.putBack();
    await triage.up();
    await answered(triage.node);
    expect(await world.owner(triage)).toBe(`${billing.url} at 2`);
    await triage.down();
    await triage.disks.putBackLedger();
    billing.line.lose('requests');
    await triage.up();
    expect(await attention(triage)).toMatchObject([
      { what: 'case_quarantined', data: { reason: 'epoch_regressed', witnessed: { epoch: 2 } } },
    ]);
    billing.line.lose('nothing');
    await answered(triage.node);
    await resolve(triage, billing);
    await goesOn(triage);
  });

  it('[R-166] closes the offer that was open then, once a person has said that it was accepted', async () => {
    billing.line.lose('replies');
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
    await triage.down();
    await triage.disks.keep();
    billing.line.lose('nothing');
    await triage.up();
    await expect.poll(() => world.owner(triage), { timeout: 15_000 }).toBe(`${billing.url} at 2`);
    await triage.down();
    await triage.disks.putBackLedger();
    await triage.up();
    await answered(triage.node);
    expect(await attention(triage)).toMatchObject([{ what: 'case_quarantined' }]);
    await resolve(triage, billing);
    await goesOn(triage);
  });
});
