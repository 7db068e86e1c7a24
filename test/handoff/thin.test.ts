import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { reviewContract } from '../node/thin-pair.js';
import { answerOf, BILLING, createWorld, TRIAGE, type World } from './world.js';

const contract = reviewContract();
let world: World;

beforeEach(async () => {
  world = await createWorld({ contract });
});
afterEach(() => world.close());

function message(kind: string) {
  const data = {
    version: 2,
    root: TRIAGE,
    incarnation: 'inc_1',
    case_id: 'CASE-7001',
    kind,
    handoff_id: 'CASE-7001:2',
    attempt: 1,
    from_agent: TRIAGE,
    to_agent: BILLING,
    epoch: 1,
    contract: contract.id,
    skill: contract.skill.id,
    accept_by: '2099-01-01T00:00:00Z',
    chain: { hops: [TRIAGE], tasks_left: 5 },
    trace: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
  };
  return {
    messageId: 'CASE-7001:2:1',
    role: 'ROLE_USER',
    parts: [{ data, mediaType: 'application/vnd.holdfast.handoff.v2+json' }],
  };
}

describe('a thin offer', () => {
  it('[R-192] of a kind with separate ledgers is rejected for good', async () => {
    const kind = await world.ledger.getKind('default', 'refund-dispute');
    if (kind === null) throw new Error('no kind');
    const elsewhere = { ...kind, kind: 'elsewhere', mode: 'separate' as const, contracts: [contract.id] };
    await world.ledger.putKind('default', elsewhere);
    const answer = answerOf(await world.deliver(message('elsewhere')));
    expect(answer).toMatchObject({ accepted: false, code: 'thin_separate', final: true });
    expect(answerOf(await world.deliver(message('elsewhere')))).toEqual(answer);
    expect(await world.ledger.findCases('default', 'CASE-7001')).toEqual([]);
  });

  it('that nothing here can read is an error, and decides nothing', async () => {
    const kind = await world.ledger.getKind('default', 'refund-dispute');
    if (kind === null) throw new Error('no kind');
    await world.ledger.putKind('default', { ...kind, contracts: [contract.id] }, { replace: true });
    await world.openCase('CASE-7001');
    await expect(world.deliver(message('refund-dispute'))).rejects.toMatchObject({ code: 'reader_missing' });
    const key = { tenant: 'default', root: TRIAGE, sender: TRIAGE, handoffId: 'CASE-7001:2', attempt: 1 };
    expect(await world.ledger.findDecision(key)).toBeNull();
  });
});
