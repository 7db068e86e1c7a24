import { actsFor, parsePerson } from '../../src/core/index.js';
import type { CaseRow, ChangeProof, OwnerChange, Transfer } from '../../src/ledger/index.js';
import { isInside } from '../../src/ledger/index.js';
import { type Crossing, type Party, REF } from '../storage/suite/parties.js';
import { inside, personOf } from '../storage/suite/takeovers.js';
import type { Member } from './separate-member.js';

/* What persons do in the search: they take cases, pass them on, give them back, and let their agent offer them. */

/** Whether the case is this party's: its agent's, or one of its persons'. */
export const isOf = (row: CaseRow | null, party: Party): row is CaseRow =>
  row !== null && actsFor(row.owner) === party.url;

/** The agent's case goes to a person; a person's to the other, or back. */
export async function passOn(party: Member, rng: () => number): Promise<void> {
  const row = await party.ledger.getCase(REF);
  if (!isOf(row, party)) return;
  const persons = [personOf(party), personOf(party, 'bob')].filter((one) => one !== row.owner);
  const to = persons[Math.floor(rng() * persons.length)] as string;
  const [change, next]: [OwnerChange, string] =
    parsePerson(row.owner) === null
      ? [rng() < 0.5 ? 'takeover' : 'escalation', to]
      : rng() < 0.5
        ? ['reassignment', to]
        : ['return', party.url];
  const command = inside(party, change, [row.owner, next], row.epoch);
  const proof = { ...(command.proof as ChangeProof), digest: `${change} ${party.words()}` };
  await party.ledger.changeOwner({ ...command, proof });
}

/** As a node does it that thinks that a takeover ends whatever an offer may still come to. */
export async function takeWithOpenOffer(party: Party, { offer }: Crossing): Promise<void> {
  const row = await party.ledger.getCase(REF);
  if (!isOf(row, party) || row.epoch !== offer.epoch) return;
  await party.ledger.markInDoubt(offer.key);
  const take = inside(party, 'takeover', [row.owner, personOf(party, 'carol')], row.epoch, { force: true });
  await party.ledger.changeOwner(take);
}

/** What a node leaves out of the provenance: of each run inside one node all but the last. */
export function shortened(provenance: readonly Transfer[]): Transfer[] {
  return provenance.filter((one, at) => {
    const next = provenance[at + 1];
    return next === undefined || !isInside(one) || !isInside(next);
  });
}
