import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { accept, type CaseRef, type Holdfast, openHoldfast, parseCaseFile } from '../../src/index.js';
import { CASE_FILE, CONTRACT, initPair, temporaryFolder } from '../cli/support.js';
import { auditProblems, startOrganisations, type World } from './organisations.js';

const REASON = 'it is of another customer';

async function revocationsIn({ ledger }: Holdfast, ref: CaseRef) {
  const entries = await ledger.readAudit(ref);
  return entries.filter(({ type }) => type === 'evidence_revoked').map(({ data }) => data);
}

async function carriedBy({ ledger }: Holdfast): Promise<string> {
  const [offer] = await ledger.listOffers('default', {});
  const [, id] = /"artifactId":"([^"]+)"/.exec(offer?.message ?? '') ?? [];
  return id ?? '';
}

describe('[R-053] evidence that is revoked, on one ledger', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let opened: Holdfast[];

  beforeEach(() => {
    folder = temporaryFolder();
    opened = [];
  });
  afterEach(async () => {
    await Promise.all(opened.map((holdfast) => holdfast.close()));
    folder.remove();
  });

  /** Billing runs `meanwhile` after it has fetched the evidence, and then accepts. */
  async function start(meanwhile: (triage: Holdfast) => Promise<void> = async () => {}) {
    const agents = await initPair(folder.path);
    const triage = await openHoldfast({ dir: agents.triage.dir });
    const billing = await openHoldfast({ dir: agents.billing.dir });
    opened.push(triage, billing);
    billing.onHandoff(CONTRACT, {
      check: async () => {
        await meanwhile(triage);
        return accept();
      },
    });
    await triage.start();
    await billing.start();
    const { ref } = await triage.openCase({ caseId: 'CASE-7001', kind: 'refund' });
    const { artifactId } = await triage.addEvidence(Buffer.from('charged twice'), {
      filename: 'claim.txt',
      mediaType: 'text/plain',
    });
    const caseFile = parseCaseFile(readFileSync(CASE_FILE));
    const input = { ref, caseFile, to: billing.url, contract: CONTRACT, evidence: [{ artifactId }] };
    return { triage, billing, ref, artifactId, input };
  }

  it('cannot be accepted any more, even by a receiver that has the bytes', async () => {
    const { triage, ref, artifactId, input, billing } = await start(async (holdfast) => {
      const revocation = await holdfast.revokeEvidence({
        artifactId: await carriedBy(holdfast),
        reason: REASON,
      });
      expect(revocation.offers).toMatchObject([{ state: 'rejected', recorded: true }]);
    });
    expect(await triage.handOff(input)).toMatchObject({ state: 'rejected', code: 'evidence_revoked' });
    expect(await triage.ledger.getCase(ref)).toMatchObject({ owner: triage.url, epoch: 1 });
    expect(await billing.ledger.listWork('default', {})).toEqual([]);
    expect(await revocationsIn(billing, ref)).toMatchObject([{ artifactId, version: 1, reason: REASON }]);
  });

  it('is not offered, and nothing is stored', async () => {
    const { triage, artifactId, input } = await start();
    await triage.revokeEvidence({ artifactId, reason: REASON });
    await expect(triage.handOff(input)).rejects.toMatchObject({ code: 'evidence_revoked' });
    expect(await triage.ledger.listOffers('default', {})).toEqual([]);

    const next = await triage.addEvidence(Buffer.from('charged twice, and corrected'), {
      filename: 'claim.txt',
      mediaType: 'text/plain',
      artifactId,
    });
    expect(next).toMatchObject({ version: 2 });
    const wanted = { ...input, evidence: [{ artifactId, version: 1 }] };
    await expect(triage.handOff(wanted)).rejects.toMatchObject({ code: 'evidence_revoked' });
    expect(await triage.handOff(input)).toMatchObject({ state: 'accepted' });
  });

  it('is told where it was accepted before, once, for both sides to read', async () => {
    const { triage, billing, ref, artifactId, input } = await start();
    expect(await triage.handOff(input)).toMatchObject({ state: 'accepted', epoch: 2 });
    const revocation = await triage.revokeEvidence({ artifactId, reason: REASON });
    expect(revocation).toMatchObject({
      artifacts: [{ artifactId, version: 1, revoked: { reason: REASON } }],
      offers: [{ state: 'accepted', recorded: true }],
    });
    expect(await triage.revokeEvidence({ artifactId, reason: 'said twice' })).toMatchObject({
      artifacts: [{ revoked: { reason: REASON } }],
      offers: [{ state: 'accepted', recorded: true }],
    });
    expect(await revocationsIn(billing, ref)).toMatchObject([
      { artifactId, offer: 'accepted', reason: REASON },
    ]);
    expect(await billing.ledger.getCase(ref)).toMatchObject({ owner: billing.url, epoch: 2 });
    const [kept] = await billing.evidence.list();
    expect(kept).toMatchObject({ filename: 'claim.txt' });
    expect(kept).not.toHaveProperty('revoked');
  });

  it('is named as it is there, with a reason that may stand in the audit', async () => {
    const { triage, artifactId } = await start();
    const revoke = (change: object) => triage.revokeEvidence({ artifactId, reason: REASON, ...change });
    await expect(revoke({ artifactId: 'art_none' })).rejects.toMatchObject({ code: 'evidence_file_missing' });
    await expect(revoke({ version: 2 })).rejects.toMatchObject({ code: 'evidence_file_missing' });
    await expect(revoke({ reason: 'ring +49 170 1234567' })).rejects.toMatchObject({ code: 'personal_data' });
    await expect(revoke({ reason: ' ' })).rejects.toMatchObject({ code: 'usage' });
    expect((await triage.evidence.list()).every(({ revoked }) => revoked === undefined)).toBe(true);
  });
});

describe('[R-053] evidence that is revoked, with two ledgers', () => {
  let world: World;
  beforeEach(async () => {
    world = await startOrganisations(['triage', 'billing']);
    await world.open();
  });
  afterEach(() => world.close());

  it('is not served any more: the receiver rejects the offer, which closes by that', async () => {
    const { triage, billing } = world;
    billing.line.lose('requests');
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
    const artifactId = await carriedBy(triage.node);
    const revocation = await triage.node.revokeEvidence({ artifactId, reason: REASON });
    expect(revocation.offers).toMatchObject([{ state: 'offered', recorded: true }]);
    billing.line.lose('nothing');
    const offer = async () => (await triage.node.ledger.listOffers('default', {}))[0];
    await expect
      .poll(offer, { timeout: 20_000 })
      .toMatchObject({ state: 'rejected', code: 'evidence_revoked' });
    const key = (await offer())?.key;
    if (key === undefined) throw new Error('no offer');
    expect(await billing.node.ledger.findDecision(key)).toMatchObject({
      verdict: 'rejected',
      code: 'evidence_revoked',
    });
    expect(await world.owner(triage)).toBe(`${triage.url} at 1`);
    expect(await world.owner(billing)).toBeNull();
    expect(await auditProblems(triage, world.ref())).toEqual([]);
  });

  it('is told at the sender alone where the receiver has it already, and what was accepted stays so', async () => {
    const { triage, billing } = world;
    billing.check = async () => {
      const artifactId = await carriedBy(triage.node);
      await triage.node.revokeEvidence({ artifactId, reason: REASON });
      return accept();
    };
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'accepted', epoch: 2 });
    expect(await revocationsIn(triage.node, world.ref())).toMatchObject([
      { offer: 'offered', reason: REASON },
    ]);
    expect(await revocationsIn(billing.node, world.ref())).toEqual([]);
    expect(await world.owner(billing)).toBe(`${billing.url} at 2`);
    expect(await auditProblems(triage, world.ref())).toEqual([]);
  });
});
