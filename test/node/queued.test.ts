import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { accept, clarify, decideLater, type TaskNews } from '../../src/index.js';
import { type Candidates, type Mode, startCandidates } from './candidates-world.js';

const WAIT = { timeout: 20_000, interval: 20 };
const LIMIT_MS = 60_000;
const ANSWER = { text: 'The second payment is meant.' };

/** The first candidate has checked the offer, and somebody has to decide. */
async function waits({ first }: Candidates): Promise<void> {
  const states = async () => (await first.node.listPending()).map(({ state }) => state);
  await expect.poll(states, WAIT).toEqual(['waiting']);
}

describe.each<Mode>(['shared', 'separate'])('an offer that is not decided at once, %s', (mode) => {
  let world: Candidates;

  beforeEach(async () => {
    world = await startCandidates(mode);
    await world.open();
  });
  afterEach(() => world.close());

  const queued = () => world.handOff({ to: world.first.url, waiting: 'queued' });
  const audited = async (type: string) => {
    const audits = await Promise.all(
      [world.triage, world.first].map(({ node }) => node.ledger.readAudit(world.ref)),
    );
    const entries = mode === 'shared' ? (audits[0] ?? []) : audits.flat();
    return entries.filter((entry) => entry.type === type);
  };

  it(
    '[R-093] returns with the task, is read until somebody has decided, and is not sent again meanwhile',
    async () => {
      const { triage, first } = world;
      first.check = () => decideLater();
      const sent = await queued();
      expect(sent).toMatchObject({
        state: 'open',
        problem: null,
        offer: { state: 'offered' },
        task: { peer: first.url, taskId: expect.any(String), question: null },
      });
      expect(await triage.node.ledger.getSentTask(sent.offer.key)).toMatchObject({ peer: first.url });
      expect(await world.owners()).toEqual(new Set([`${triage.url} at 3`]));
      await waits(world);
      await first.node.acceptPending({ key: sent.offer.key, person: 'bob' });
      await expect.poll(() => world.offers(), WAIT).toEqual(['accepted']);
      await expect.poll(() => world.owners(), WAIT).toEqual(new Set([`${first.url} at 4`]));
      expect(await audited('delivery_repeated')).toEqual([]);
      expect(await world.problems()).toEqual([]);
    },
    LIMIT_MS,
  );

  it(
    'shows what is asked, and sends an answer of which nothing leaves that may not',
    async () => {
      const { triage, first } = world;
      const heard: unknown[] = [];
      first.check = ({ clarifications }) => {
        heard.push(...clarifications);
        return clarifications.length === 0 ? clarify('Which payment is meant?') : accept();
      };
      const sent = await queued();
      const { key } = sent.offer;
      await expect
        .poll(() => triage.node.ledger.listAttention('default'), WAIT)
        .toMatchObject([
          { what: 'question_open', data: { n: 1, question: 'Which payment is meant?', peer: first.url } },
        ]);
      const fact = { key: 'shoe_size', value: 43, source: 'crm', verified: false };
      await expect(triage.node.answerQuestion({ key, facts: [fact] })).rejects.toMatchObject({
        code: 'answer_invalid',
        fields: [{ path: 'facts.shoe_size' }],
      });
      await expect(triage.node.answerQuestion({ key, text: 'Call +44 20 7946 0958.' })).rejects.toMatchObject(
        {
          code: 'personal_data',
        },
      );
      expect(await audited('answer_prepared')).toEqual([]);
      await triage.node.answerQuestion({ key, ...ANSWER });
      await expect.poll(() => world.offers(), WAIT).toEqual(['accepted']);
      expect(heard).toMatchObject([{ question: 'Which payment is meant?', answer: ANSWER }]);
      expect(await triage.node.ledger.listAttention('default')).toEqual([]);
      expect(await world.owners()).toEqual(new Set([`${first.url} at 4`]));
      expect(await world.problems()).toEqual([]);
    },
    LIMIT_MS,
  );

  it(
    '[R-093] sends an answer again whose reply was lost, the same bytes, and no other',
    async () => {
      const { triage, first } = world;
      first.check = ({ clarifications }) =>
        clarifications.length === 0 ? clarify('Which payment is meant?') : decideLater();
      const { offer } = await queued();
      const { key } = offer;
      const task = () => triage.node.ledger.getSentTask(key);
      await expect.poll(task, WAIT).toMatchObject({ question: { n: 1 } });
      first.line.lose('requests');
      expect(await triage.node.answerQuestion({ key, ...ANSWER })).toMatchObject({ state: 'open' });
      await expect(triage.node.answerQuestion({ key, text: 'No, the first.' })).rejects.toMatchObject({
        code: 'duplicate_conflict',
        message: expect.stringContaining('Question 1 has another answer already'),
      });
      first.line.lose('nothing');
      await expect.poll(() => audited('question_answered'), WAIT).toHaveLength(1);
      await expect.poll(task, WAIT).toMatchObject({ state: expect.not.stringContaining('INPUT') });
      await waits(world);
      await first.node.acceptPending({ key, person: 'bob' });
      await expect.poll(() => world.offers(), WAIT).toEqual(['accepted']);
      expect(await audited('answer_prepared')).toHaveLength(1);
      expect(await world.problems()).toEqual([]);
    },
    LIMIT_MS,
  );
});

it(
  '[R-093][R-149] hears of the decision by push, which only makes it look',
  async () => {
    const world = await startCandidates('separate', true);
    try {
      await world.open();
      const { first, triage } = world;
      first.check = () => decideLater();
      const { offer } = await world.handOff({ to: first.url, waiting: 'queued' });
      const news: TaskNews[] = [];
      triage.node.onTaskNews((one) => void news.push(one));
      await waits(world);
      await first.node.acceptPending({ key: offer.key, person: 'bob' });
      // It would look by itself in a minute at the earliest.
      await expect.poll(() => world.offers(), WAIT).toEqual(['accepted']);
      const task = await triage.node.ledger.getSentTask(offer.key);
      await expect
        .poll(() => news.map(({ peer, taskId }) => [peer, taskId]), WAIT)
        .toContainEqual([first.url, task?.taskId]);
      expect(await world.owners()).toEqual(new Set([`${first.url} at 4`]));
    } finally {
      await world.close();
    }
  },
  LIMIT_MS,
);

it(
  '[R-193] waits for the decision or not as the kind of the case says, where the call does not',
  async () => {
    const world = await startCandidates('separate', false, 'queued');
    try {
      await world.open();
      const { first } = world;
      first.check = () => decideLater();
      const { offer } = await world.handOff({ to: first.url });
      expect(offer.state).toBe('offered');
      await waits(world);
      await first.node.rejectPending({
        key: offer.key,
        code: 'records_disagree',
        reason: 'no',
        person: 'bob',
      });
      await expect.poll(() => world.offers(), WAIT).toEqual(['rejected']);
      const blocked = world.handOff({ to: first.url, waiting: 'blocking' });
      await waits(world);
      await first.node.acceptPending({ key: { ...offer.key, attempt: 2 }, person: 'bob' });
      expect(await blocked).toMatchObject({ state: 'accepted', epoch: 4 });
    } finally {
      await world.close();
    }
  },
  LIMIT_MS,
);
