import { describe, expect, it } from 'vitest';
import { type ContractSubject, checkContract, refundDispute } from '../../src/contract/index.js';
import { HoldfastError } from '../../src/core/index.js';
import { refundFacts } from '../refund-facts.js';
import { seeded } from '../seeded.js';

type Bend = (subject: ContractSubject, random: () => number) => ContractSubject;

const SUBJECT: ContractSubject = {
  facts: refundFacts(),
  constraints: {
    deadline: '2026-02-02T10:00:00Z',
    caps: { refund: { amount: '100.00', currency: 'EUR' } },
    prohibitions: [],
  },
  references: [{ media_type: 'text/plain', bytes: 1200 }],
  required_output: 'refund-decision/1',
};

const pick = <T>(list: readonly T[], random: () => number): number => Math.floor(random() * list.length);
const at = <T>(list: readonly T[], index: number, change: (one: T) => T[]): T[] =>
  list.flatMap((one, n) => (n === index ? change(one) : [one]));

const BENDS: readonly Bend[] = [
  (it, random) => ({ ...it, facts: at(it.facts, pick(it.facts, random), () => []) }),
  (it, random) => ({ ...it, facts: at(it.facts, pick(it.facts, random), (one) => [one, one]) }),
  (it, random) => ({
    ...it,
    facts: at(it.facts, pick(it.facts, random), (one) => [{ ...one, verified: false }]),
  }),
  (it, random) => ({
    ...it,
    facts: at(it.facts, pick(it.facts, random), (one) => [{ ...one, source: 'hearsay' }]),
  }),
  (it, random) => ({ ...it, facts: at(it.facts, pick(it.facts, random), (one) => [{ ...one, value: 7 }]) }),
  (it) => ({
    ...it,
    facts: [...it.facts, { key: 'mood', value: 'angry', source: 'customer', verified: false }],
  }),
  (it) => ({ ...it, constraints: { ...it.constraints, caps: {} } }),
  (it) => ({ ...it, references: [] }),
  (it) => ({ ...it, references: [{ media_type: 'application/zip', bytes: 0 }] }),
  (it) => it,
];

/** Every problem, in no order. */
async function verdictOn(subject: ContractSubject): Promise<readonly string[]> {
  try {
    return [JSON.stringify(Object.entries(await checkContract(refundDispute, subject)).sort())];
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    return error.fields.map(({ path, problem }) => `${path} ${problem}`).sort();
  }
}

describe('[R-104] the structural check', () => {
  it('comes to the same verdict about the same offer, however often and in whatever order its facts are read', async () => {
    const random = seeded(104);
    const verdicts = new Set<string>();
    for (let round = 0; round < 200; round += 1) {
      let subject = SUBJECT;
      for (let n = 0; n < 2; n += 1) subject = BENDS[pick(BENDS, random)]?.(subject, random) ?? subject;
      const before = JSON.stringify(subject);
      const verdict = await verdictOn(subject);
      expect(await verdictOn(subject)).toEqual(verdict);
      const order = subject.facts.map((one) => ({ one, place: random() })).sort((a, b) => a.place - b.place);
      expect(await verdictOn({ ...subject, facts: order.map(({ one }) => one) })).toEqual(verdict);
      expect(JSON.stringify(subject)).toBe(before);
      verdicts.add(verdict.join());
    }
    expect(verdicts.size).toBeGreaterThan(20);
  });
});
