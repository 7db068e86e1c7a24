import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { accept, type HandoffHandler, reject } from '../../src/index.js';
import { ACCEPT_WITHIN_MS, CASE, type Candidates, type Mode, startCandidates } from './candidates-world.js';

const WAIT = { timeout: 20_000, interval: 20 };
const LIMIT_MS = 60_000;
type Check = NonNullable<HandoffHandler['check']>;

/** Judges until it is let go, and accepts then. */
function slow(): { check: Check; begun: Promise<void>; letGo(): void } {
  let letGo: () => void = () => undefined;
  const gone = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  let begin: () => void = () => undefined;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  return {
    letGo,
    begun,
    check: async () => {
      begin();
      await gone;
      return accept();
    },
  };
}

describe.each<Mode>(['shared', 'separate'])('ordered candidates, %s', (mode) => {
  let world: Candidates;

  beforeEach(async () => {
    world = await startCandidates(mode);
    await world.open();
  });
  afterEach(() => world.close());

  it(
    '[R-094][R-095] tries the second once the first is closed by proof, and refuses the late acceptance of the first',
    async () => {
      const { triage, first, second } = world;
      const late = slow();
      first.check = late.check;
      const sent = await world.handOff({ waiting: 'queued' });
      expect(sent).toMatchObject({ state: 'open', offer: { toAgent: first.url, key: { attempt: 1 } } });
      expect(await world.owners()).toEqual(new Set([`${triage.url} at 3`]));
      // Whatever it holds meanwhile, the second is not asked.
      expect(await world.offers()).toHaveLength(1);
      // It has read the evidence, and thinks.
      await late.begun;
      world.advance(ACCEPT_WITHIN_MS + 1_000);
      await expect
        .poll(() => world.offers(), WAIT)
        .toEqual([expect.stringMatching(/expired|withdrawn|rejected/), 'accepted']);
      await expect.poll(() => world.owners(), WAIT).toContain(`${second.url} at 4`);
      late.letGo();
      const again = await world.deliver(first, sent.offer.message);
      expect(again.status.state).toMatch(/REJECTED|CANCELED/);
      // By its sender's withdrawal, or by its own clock, whichever came first.
      expect(JSON.stringify(again)).toMatch(/"code":"(withdrawn|offer_expired)"/);
      const work = async ({ node }: { node: typeof triage.node }) =>
        (await node.ledger.listWork('default', { caseId: CASE })).map(({ owner }) => owner);
      expect(await work(first)).toEqual(mode === 'shared' ? [second.url] : []);
      expect(await work(second)).toEqual([second.url]);
      expect(await world.owners()).toEqual(new Set([`${second.url} at 4`]));
      await expect.poll(() => world.plan(), WAIT).toBe('ended accepted');
      expect(await world.problems()).toEqual([]);
    },
    LIMIT_MS,
  );

  it(
    '[R-094] goes on after a rejection in the same call, with the same content and nothing more',
    async () => {
      const { triage, first, second } = world;
      first.check = () => reject('records_disagree', 'No such payment.');
      expect(await world.handOff()).toMatchObject({ state: 'accepted', owner: second.url, epoch: 4 });
      const { offers } = await triage.node.ledger.snapshot(world.ref);
      expect(offers.map(({ state, toAgent }) => [state, toAgent])).toEqual([
        ['rejected', first.url],
        ['accepted', second.url],
      ]);
      const [one, two] = offers.map(({ message }) => JSON.parse(message).parts[1].data);
      for (const name of ['facts', 'goal', 'constraints', 'summary', 'case_id', 'epoch', 'handoff_id'])
        expect(two[name], name).toEqual(one[name]);
      expect(two).toMatchObject({ attempt: 2, to_agent: second.url });
      expect(two.references[0].url).not.toBe(one.references[0].url);
      expect(offers[1]?.withheld).toEqual(offers[0]?.withheld);
      await expect.poll(() => world.plan(), WAIT).toBe('ended accepted');
      expect(await world.problems()).toEqual([]);
    },
    LIMIT_MS,
  );

  it(
    '[R-098] waits for a person when nobody is left, owner unchanged, until the case is offered anew',
    async () => {
      const { triage, first, second } = world;
      first.check = () => reject('records_disagree', 'No such payment.');
      second.check = () => reject('contract_refused', 'Not ours.');
      expect(await world.handOff()).toMatchObject({ state: 'rejected', code: 'contract_refused' });
      expect(await world.plan()).toBe('exhausted candidates_exhausted');
      expect(await world.owners()).toEqual(new Set([`${triage.url} at 3`]));
      const attention = () => triage.node.ledger.listAttention('default');
      expect(await attention()).toMatchObject([
        {
          what: 'candidates_exhausted',
          ref: world.ref,
          data: {
            owner: triage.url,
            candidates: [
              { agent: first.url, attempt: 1 },
              { agent: second.url, attempt: 2 },
            ],
          },
        },
      ]);
      first.check = () => accept();
      expect(await world.handOff({ to: first.url })).toMatchObject({ state: 'accepted', owner: first.url });
      expect(await attention()).toEqual([]);
      expect(await world.problems()).toEqual([]);
    },
    LIMIT_MS,
  );

  it('asks nobody else where the rejection holds for every candidate', async () => {
    world.first.check = () => reject('case_changed', 'There is a newer state.');
    expect(await world.handOff()).toMatchObject({ state: 'rejected', code: 'case_changed' });
    expect(await world.plan()).toBe('exhausted case_changed');
    expect(await world.offers()).toEqual(['rejected']);
  });

  it(
    'goes no further once the offer is withdrawn by hand',
    async () => {
      const late = slow();
      world.first.check = late.check;
      const { offer } = await world.handOff({ waiting: 'queued' });
      expect(await world.triage.node.voidOffer(offer.key, 'not any more')).toMatchObject({
        state: 'withdrawn',
      });
      expect(await world.plan()).toBe('ended withdrawn');
      late.letGo();
      expect(await world.offers()).toEqual(['withdrawn']);
      expect(await world.owners()).toEqual(new Set([`${world.triage.url} at 3`]));
      expect(await world.problems()).toEqual([]);
    },
    LIMIT_MS,
  );

  it('looks at every candidate before anything is stored', async () => {
    const to = [world.first.url, 'http://127.0.0.1:9'];
    await expect(world.handOff({ to })).rejects.toMatchObject({ code: 'peer_unknown' });
    await expect(world.handOff({ to: [world.first.url, world.first.url] })).rejects.toMatchObject({
      code: 'usage',
    });
    await expect(world.handOff({ to: [] })).rejects.toMatchObject({ code: 'usage' });
    await expect(world.handOff({ escalateTo: 'Not An Id' })).rejects.toMatchObject({ code: 'usage' });
    expect(await world.offers()).toEqual([]);
    expect(await world.plan()).toBeNull();
  });
});

describe.each<Mode>(['shared', 'separate'])('a sender that is killed between two candidates, %s', (mode) => {
  let world: Candidates;

  beforeEach(async () => {
    world = await startCandidates(mode);
    await world.open();
    world.first.check = () => reject('records_disagree', 'No such payment.');
  });
  afterEach(() => world.close());

  it.each(['C1.before_step', 'S2.before_commit@2', 'S2.after_commit@2', 'S3.after_mark@2'])(
    '[R-094] at %s neither skips one nor asks two at once',
    async (point) => {
      const { triage, first, second } = world;
      expect(await world.handOffAndDie(point.replace(/(@|$)/, '=kill9$1'))).toBe('SIGKILL');
      await expect.poll(() => world.offers(), WAIT).toEqual(['rejected', 'accepted']);
      await expect.poll(() => world.plan(), WAIT).toBe('ended accepted');
      const { offers } = await triage.node.ledger.snapshot(world.ref);
      expect(offers.map(({ toAgent, key }) => [toAgent, key.attempt])).toEqual([
        [first.url, 1],
        [second.url, 2],
      ]);
      expect(await world.owners()).toEqual(new Set([`${second.url} at 4`]));
      expect(await world.problems()).toEqual([]);
    },
    LIMIT_MS,
  );

  it(
    '[R-098] leaves the case to a person all the same',
    async () => {
      const { triage, first, second } = world;
      second.check = first.check;
      expect(await world.handOffAndDie('C1.before_step=kill9@2')).toBe('SIGKILL');
      await expect.poll(() => world.plan(), WAIT).toBe('exhausted candidates_exhausted');
      expect(await world.offers()).toEqual(['rejected', 'rejected']);
      expect(await world.owners()).toEqual(new Set([`${triage.url} at 3`]));
    },
    LIMIT_MS,
  );
});

describe('ordered candidates', () => {
  let world: Candidates;
  afterEach(() => world.close());

  it('are for what the agent owns: a person approves of one offer to one agent', async () => {
    world = await startCandidates('separate');
    await world.open();
    const { triage, first, second } = world;
    const { ref } = world;
    await triage.node.takeCase({ ref, epoch: 3, person: 'ann', reason: 'looked into by hand' });
    for (const more of [{ to: [first.url, second.url] }, { to: first.url, escalateTo: 'bob' }]) {
      await expect(world.handOff({ ...more, person: 'ann' })).rejects.toMatchObject({ code: 'usage' });
    }
    expect(await world.offers()).toEqual([]);
    expect(await world.handOff({ to: first.url, person: 'ann' })).toMatchObject({ state: 'accepted' });
    expect(await world.owners()).toEqual(new Set([`${first.url} at 5`]));
    expect(await world.problems()).toEqual([]);
  });

  it.each<Mode>(['shared', 'separate'])(
    '[R-098] gives the case to the person who is named for it, %s',
    async (mode) => {
      world = await startCandidates(mode);
      await world.open();
      const { triage, first } = world;
      first.check = () => reject('records_disagree', 'No such payment.');
      expect(await world.handOff({ to: first.url, escalateTo: 'ann' })).toMatchObject({ state: 'rejected' });
      expect(await world.owners()).toEqual(new Set([`person:ann@${triage.url} at 4`]));
      await expect.poll(() => world.plan(), WAIT).toBe('ended escalated');
      expect(await triage.node.ledger.listAttention('default')).toEqual([]);
      expect(await world.problems()).toEqual([]);
    },
  );

  it.each<[Mode, string]>([
    ['shared', 'C2.before_escalation'],
    ['shared', 'C2.after_escalation'],
    ['separate', 'C2.before_escalation'],
    ['separate', 'C2.after_escalation'],
  ])(
    '[R-098] does so once, %s, killed at %s',
    async (mode, point) => {
      world = await startCandidates(mode);
      await world.open();
      const { triage, first } = world;
      first.check = () => reject('records_disagree', 'No such payment.');
      const input = { to: first.url, escalateTo: 'ann' };
      expect(await world.handOffAndDie(`${point}=kill9`, input)).toBe('SIGKILL');
      await expect.poll(() => world.plan(), WAIT).toBe('ended escalated');
      expect(await world.owners()).toEqual(new Set([`person:ann@${triage.url} at 4`]));
      expect(await world.problems()).toEqual([]);
    },
    LIMIT_MS,
  );

  it(
    '[R-096] stops while an offer is in doubt, and goes on by proof',
    async () => {
      world = await startCandidates('separate');
      await world.open();
      const { first, second } = world;
      first.line.lose('requests');
      expect(await world.handOff({ waiting: 'queued' })).toMatchObject({ state: 'open' });
      world.advance(ACCEPT_WITHIN_MS + 1_000);
      await expect.poll(() => world.offers(), WAIT).toEqual(['in_doubt']);
      expect(await world.triage.node.ledger.listOffers('default', { to: second.url })).toEqual([]);
      first.line.lose('nothing');
      await expect.poll(() => world.offers(), WAIT).toEqual(['expired', 'accepted']);
      expect(await world.owners()).toEqual(new Set([`${second.url} at 4`]));
      expect(await world.problems()).toEqual([]);
    },
    LIMIT_MS,
  );
});
