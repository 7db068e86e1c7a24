import { beforeEach, describe, expect, it } from 'vitest';
import type { CaseSnapshot } from '../../src/ledger/index.js';
import { createMemoryLedger } from '../../src/storage/index.js';
import { type Act, Acts } from '../crash/separate/acts.js';
import { objectionsTo, settledObjections } from '../crash/separate/observer.js';
import { type Party, REF, type World, worldOf } from '../storage/suite/parties.js';
import { inside, personOf } from '../storage/suite/takeovers.js';

const NEVER = new Map<string, CaseSnapshot>();

/** Who watches two ledgers and a target is itself watched here: a history without fault passes, and each fault is told apart. */
describe('the observer of two ledgers', () => {
  let world: World;
  let triage: Party;
  let billing: Party;

  beforeEach(async () => {
    world = await worldOf(async (clock) => createMemoryLedger({ clock }), 'triage');
    ({ triage, billing } = world);
  });

  const see = ({ ledger }: Party) => ledger.snapshot(REF);
  const look = async (first: Party, other: Party, again?: CaseSnapshot) => ({
    first: { agent: first.url, seen: await see(first) },
    other: { agent: other.url, seen: await see(other) },
    again: again ?? (await see(first)),
  });
  /** What is said of every look that can be taken now. */
  const objections = async (earlier = NEVER) => [
    ...objectionsTo(await look(triage, billing), earlier),
    ...objectionsTo(await look(billing, triage), earlier),
  ];
  const cross = async (from: Party, to: Party, epoch: number) => {
    const crossing = await from.offer(to, epoch);
    const transfer = await to.accepted(crossing);
    await from.ledger.releaseOffer(transfer);
    return crossing;
  };

  it('[R-166] objects to nothing that two honest ledgers do, at any step', async () => {
    const seen: string[] = [...(await objections())];
    const step = async (work: Promise<unknown>) => {
      await work;
      seen.push(...(await objections()));
    };
    await step(triage.start(1, 'r1'));
    await step(triage.settle(1, 'r1', 'done'));
    const first = await triage.offer(billing, 1);
    await step(billing.withdraw(first));
    await step(triage.ledger.markInDoubt(first.offer.key));
    await step(triage.close(first));
    const second = await triage.offer(billing, 1, { attempt: 2 });
    await step(billing.reject(second));
    await step(
      triage.close(second, {
        verdict: 'rejected',
        code: 'fact_missing',
        digest: second.offer.digest,
        answer: '{}',
      }),
    );
    const third = await triage.offer(billing, 1, { attempt: 3 });
    const there = await billing.accepted(third);
    await step(billing.start(2, 'r2'));
    await step(triage.ledger.releaseOffer(there));
    await step(billing.settle(2, 'r2', 'done'));
    const back = await billing.offer(triage, 2);
    await step(triage.accepted(back));
    await step(billing.ledger.releaseOffer(await transferIn(triage, 3)));
    expect(seen).toEqual([]);
    const acts = [act('r1', triage, 1), act('r2', billing, 2)];
    expect(settled(await see(triage), await see(billing), acts, [2, 3])).toEqual([]);
  });

  it('is not deceived by a change of owner between its looks', async () => {
    const before = await see(triage);
    await cross(triage, billing, 1);
    expect(
      objectionsTo(
        {
          first: { agent: triage.url, seen: before },
          other: { agent: billing.url, seen: await see(billing) },
          again: await see(triage),
        },
        NEVER,
      ),
    ).toEqual([]);
  });

  it('[R-166] sees two that can act at the same time', async () => {
    const before = await see(triage);
    await billing.accepted(await triage.offer(billing, 1));
    const other = { agent: billing.url, seen: await see(billing) };
    expect(
      objectionsTo({ first: { agent: triage.url, seen: before }, other, again: before }, NEVER),
    ).toContainEqual(expect.stringMatching(/^H1: .* can act at the same time$/));
  });

  it('sees an effect that is started while an offer is open, by the row and by the audit', async () => {
    await triage.start(1, 'r1');
    const started = await see(triage);
    await triage.settle(1, 'r1', 'done');
    await triage.offer(billing, 1);
    const out = await see(triage);
    const row = { ...out, effects: started.effects };
    expect(await objectionsOf(row)).toContainEqual('H6: r1 is started while an offer is open');
    const [opened, start, settle, ...offered] = out.audit;
    const reordered = { ...out, audit: [opened, ...offered, start, settle] as typeof out.audit };
    expect(await objectionsOf(reordered)).toContainEqual(
      expect.stringMatching(/^H6: r1 was started at entry \d+ while an offer was out$/),
    );
  });

  it('sees an offer that was closed without proof', async () => {
    const crossing = await triage.offer(billing, 1);
    await triage.close(crossing);
    expect(await objections()).toContainEqual(
      expect.stringMatching(/^H6: .* closed tombstone without proof$/),
    );
  });

  it('sees two verdicts on one attempt', async () => {
    const crossing = await triage.offer(billing, 1);
    await billing.accepted(crossing);
    await triage.close(crossing);
    expect(await objections()).toContainEqual(expect.stringMatching(/^H4: decided twice/));
  });

  it('sees an owner whose own ledger does not know it', async () => {
    await triage.ledger.releaseOffer(await world.billing.accepted(await triage.offer(billing, 1)));
    const gone = { ...(await see(billing)), case: null };
    const first = { agent: triage.url, seen: await see(triage) };
    expect(
      objectionsTo({ first, other: { agent: billing.url, seen: gone }, again: first.seen }, NEVER),
    ).toContainEqual(expect.stringMatching(/^H7: .* its ledger is at 0$/));
  });

  it('sees what was there before and is no more: a decision, a work item, an epoch', async () => {
    await cross(triage, billing, 1);
    const there = await see(billing);
    const earlier = new Map([[billing.url, there]]);
    const now = async (changed: Partial<CaseSnapshot>) => {
      const { first, again } = await look(triage, billing);
      return objectionsTo(
        { first, other: { agent: billing.url, seen: { ...there, ...changed } }, again },
        earlier,
      );
    };
    expect(await now({ decisions: [] })).toContainEqual('H7: a decision is gone');
    expect(await now({ work: [] })).toContainEqual('H7: no work item');
    expect(await now({ case: there.case && { ...there.case, epoch: 1 } })).toContainEqual(
      'H2: an epoch went back',
    );
  });

  it('sees an epoch that was issued twice, and one that was left out', async () => {
    await cross(triage, billing, 1);
    const seen = await see(triage);
    const other = { agent: billing.url, seen: await see(billing) };
    const [transfer] = seen.transfers;
    const twice = { ...seen, transfers: seen.transfers.map((one) => ({ ...one, digest: 'other' })) };
    expect(
      objectionsTo({ first: { agent: triage.url, seen: twice }, other, again: twice }, NEVER),
    ).toContainEqual('H2: epoch 2 was issued twice');
    const left = {
      ...seen,
      transfers: [...seen.transfers, { ...transfer, oldEpoch: 3, newEpoch: 4 } as never],
    };
    expect(
      objectionsTo({ first: { agent: triage.url, seen: left }, other, again: left }, NEVER),
    ).toContainEqual('H2: an epoch was left out');
  });

  it('[R-189] sees, once all is settled, what is lost, open, or remembered otherwise than it was', async () => {
    await triage.start(1, 'r1');
    await triage.settle(1, 'r1', 'done');
    await triage.start(1, 'r2');
    await triage.settle(1, 'r2', 'failed');
    await cross(triage, billing, 1);
    const [here, there] = [await see(triage), await see(billing)];
    const done = [act('r1', triage, 1)];
    expect(settled(here, there, done, [2])).toEqual([]);
    expect(settled(here, there, done, [2, 4])).toContainEqual(
      'H7: the acceptance of epoch 4 was acknowledged and is lost',
    );
    expect(settled(here, there, [])).toContainEqual(
      expect.stringMatching(/^H5: r1 is done by .* happened 0 times$/),
    );
    expect(settled(here, there, [...done, ...done])).toContainEqual(
      expect.stringMatching(/happened 2 times$/),
    );
    expect(settled(here, there, [...done, act('r2', triage, 1)])).toContainEqual(
      expect.stringMatching(/^H5: r2 has failed by .* and happened$/),
    );
    expect(settled(here, there, [...done, act('r3', triage, 1)])).toContainEqual(
      'H5: r3 happened, and its ledger does not know it',
    );
    expect(settled(here, there, [act('r1', triage, 2)])).toContainEqual(
      expect.stringMatching(/^H3: r1 was done by/),
    );
    expect(settled({ ...here, case: null }, there, done)).toContainEqual('H1: its root does not know it');
    expect(settled(here, { ...there, case: null }, done)).toContainEqual('H7: its owner does not know it');
    const owned = { ...there, case: there.case && { ...there.case, owner: triage.url } };
    expect(settled(here, owned, done)).toContainEqual('H1: 0 can act when all is settled');
    const tampered = here.audit.map((entry, at) => (at === 1 ? { ...entry, actor: 'another' } : entry));
    expect(settled({ ...here, audit: tampered }, there, done)).toContainEqual(
      expect.stringMatching(/^H8: entry 2:/),
    );
    expect(settled({ ...here, transfers: [] }, there, done)).toContainEqual(expect.stringMatching(/^H8: /));
  });

  it('objects to nothing where a later owner does what has failed before', async () => {
    await triage.start(1, 'r1');
    await triage.settle(1, 'r1', 'failed');
    await cross(triage, billing, 1);
    await billing.start(2, 'r1');
    await billing.settle(2, 'r1', 'done');
    expect(settled(await see(triage), await see(billing), [act('r1', billing, 2)])).toEqual([]);
  });

  it('[R-098] objects to nothing where nobody takes it and a person gets it, if that was to be', async () => {
    const { legal } = world;
    const rejected = { verdict: 'rejected', code: 'fact_missing', answer: '{}' } as const;
    const offered = await triage.offer(legal, 1);
    await legal.reject(offered);
    await triage.close(offered, { ...rejected, digest: offered.offer.digest });
    const decliner = { agent: legal.url, seen: await see(legal) };
    const escalated = inside(triage, 'escalation', [triage.url, personOf(triage)], 1);
    await triage.ledger.changeOwner(escalated);
    const [here, there] = [await see(triage), await see(billing)];
    const looked = [await look(triage, billing), await look(billing, triage)];
    const said = looked.flatMap((one) => objectionsTo({ ...one, decliner }, NEVER));
    expect(said).toEqual([]);
    const is = (over: object, [mine, theirs] = [here, there]) =>
      settledObjections(
        { agent: triage.url, seen: mine as CaseSnapshot },
        { agent: billing.url, seen: theirs as CaseSnapshot },
        { acts: [], acknowledged: [], escalates: true, decliner, ...over },
      );
    expect(is({})).toEqual([]);
    expect(is({ escalates: false })).toEqual([`H1: ${personOf(triage)} owns it, to whom nobody gave it`]);
    expect(is({ acts: [act('r1', triage, 2)] })).toContainEqual(expect.stringMatching(/^H3: r1 was done by/));
    expect(is({ decliner: { agent: legal.url, seen: there } })).toContainEqual(
      expect.stringMatching(/^H6: .* closed rejected without proof$/),
    );
    expect(is({ decliner: { ...decliner, seen: { ...decliner.seen, case: here.case } } })).toContainEqual(
      `H1: ${legal.url} takes no case, and knows this one`,
    );
    expect(is({}, [here, { ...there, case: here.case }])).toContainEqual(
      expect.stringMatching(/^H7: a person owns 2 here/),
    );
    expect(
      is({}, [
        {
          ...here,
          work: [{ epoch: 2, envelope: '', result: null } as never],
        },
        there,
      ]),
    ).toContainEqual('H4: a person owns it, and it was accepted at their epoch');
  });

  it('[R-083][R-094] sees what waits for ever: an offer at its receiver, a list of candidates at its sender', async () => {
    await cross(triage, billing, 1);
    const [here, there] = [await see(triage), await see(billing)];
    const stored = (state: string) =>
      ({ state, key: { handoffId: 'CASE-1:2', attempt: 1 }, clarifications: [] }) as never;
    expect(settled(here, { ...there, pending: [stored('decided')] }, [])).not.toContainEqual(
      expect.stringMatching(/for ever/),
    );
    expect(settled(here, { ...there, pending: [stored('asked')] }, [])).toContainEqual(
      'H7: CASE-1:2:1 is asked for ever at its receiver',
    );
    const plan = (state: string, reason: string | null) => ({
      ...here,
      plan: { state, reason, candidates: [] } as never,
    });
    for (const [state, reason] of [
      ['active', null],
      ['exhausted', 'candidates_exhausted'],
      ['ended', 'escalated'],
    ] as const) {
      expect(settled(plan(state, reason), there, [])).toContainEqual(
        `H7: its list of candidates is ${state} ${reason}, not ended accepted`,
      );
    }
  });

  it('sees an offer or an effect that never comes to an end', async () => {
    await triage.offer(billing, 1);
    expect(settled(await see(triage), await see(billing), [])).toContainEqual(
      `H6: an offer of ${triage.url} is open for ever`,
    );
    const started = { ...(await see(billing)), effects: [{ key: 'r1', state: 'started' } as never] };
    expect(settled(await see(triage), started, [])).toContainEqual(
      `H5: r1 is started for ever in the ledger of ${billing.url}`,
    );
  });

  const objectionsOf = async (changed: CaseSnapshot) =>
    objectionsTo(
      {
        first: { agent: triage.url, seen: changed },
        other: { agent: billing.url, seen: await see(billing) },
        again: changed,
      },
      NEVER,
    );
  const settled = (
    here: CaseSnapshot,
    there: CaseSnapshot,
    acts: readonly Act[],
    acknowledged: number[] = [],
  ) =>
    settledObjections(
      { agent: triage.url, seen: here },
      { agent: billing.url, seen: there },
      { acts, acknowledged },
    );
  const act = (key: string, { url }: Party, epoch: number): Act => ({
    caseId: 'CASE-1',
    key,
    agent: url,
    epoch,
    until: 0,
  });
  const transferIn = async (party: Party, epoch: number) => {
    const found = (await party.ledger.listTransfers(REF)).find(({ newEpoch }) => newEpoch === epoch);
    if (!found) throw new Error(`no transfer to epoch ${epoch}`);
    return found;
  };
});

describe('the target that watches who acts', () => {
  const acts = () => new Acts();
  const one = (agent: string, key: string, epoch: number, until = 100): Act => ({
    caseId: 'CASE-1',
    key,
    agent,
    epoch,
    until,
  });

  it('objects to nothing when one follows the other', () => {
    const target = acts();
    target.admit(one('a', 'k1', 1), 0)();
    target.admit(one('a', 'k2', 1, 20), 10);
    // Its agent died; its limit has passed since.
    target.admit(one('b', 'k3', 2), 20)();
    target.admit(one('a', 'k4', 3), 30);
    target.told('CASE-1', 'k4');
    target.admit(one('b', 'k5', 4), 31)();
    target.admit({ ...one('b', 'k1', 1), caseId: 'CASE-2' }, 31)();
    expect(target.problems).toEqual([]);
    expect(target.of('CASE-1').map(({ key }) => key)).toEqual(['k1', 'k2', 'k3', 'k4', 'k5']);
  });

  it.each([
    ['two that act at the same time', one('b', 'k2', 2), /while k1 of a is going on/],
    ['an epoch that goes back', one('a', 'k2', 1), /comes after one of epoch 2/],
    ['two that act at one epoch', one('b', 'k2', 2), /shares its epoch with k1 of a/],
    ['a key that comes again', one('a', 'k1', 2), /is admitted a second time/],
  ])('[R-166] sees %s', (_, second, problem) => {
    const target = acts();
    target.admit(one('a', 'k1', 2), 0);
    target.admit(second, 50);
    expect(target.problems).toContainEqual(expect.stringMatching(problem));
  });
});
