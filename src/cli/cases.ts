import { type CaseRef, HoldfastError } from '../core/index.js';
import type { Holdfast } from '../node/index.js';

export const ROOT_OPTION = [
  '--root <url>',
  'the agent that opened the case, when several cases have this id',
] as const;

/** The one case that a person means by its id. @throws case_unknown, usage when several roots have such a case */
export async function findCase(holdfast: Holdfast, caseId: string, root?: string): Promise<CaseRef> {
  if (root !== undefined) {
    const ref = holdfast.caseRef(caseId, root);
    if (await holdfast.ledger.getCase(ref)) return ref;
    throw unknown(caseId, ` with the root ${ref.root}`);
  }
  const found = await holdfast.ledger.findCases(holdfast.config.tenant, caseId);
  const [only] = found;
  if (!only) throw unknown(caseId, '');
  if (found.length === 1) return only.ref;
  throw ambiguous(
    caseId,
    found.map(({ ref }) => ref),
  );
}

export function ambiguous(caseId: string, refs: readonly CaseRef[]): HoldfastError {
  const roots = refs.map(({ root }) => root).join(', ');
  return new HoldfastError('usage', `Several cases are called ${caseId}. Say which with --root: ${roots}.`);
}

function unknown(caseId: string, where: string): HoldfastError {
  return new HoldfastError('case_unknown', `There is no case ${caseId}${where} in this ledger.`, {
    data: { case_id: caseId },
  });
}

/** The epoch a writer presents. @throws usage */
export function parseEpoch(text: string, option = '--epoch'): number {
  if (/^[1-9]\d{0,15}$/.test(text) && Number(text) < Number.MAX_SAFE_INTEGER) return Number(text);
  throw new HoldfastError('usage', `${option} is a whole number from 1.`);
}
