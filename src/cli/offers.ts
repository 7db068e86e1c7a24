import { caseIdOf, HoldfastError, normalizeAgentUrl } from '../core/index.js';
import type { OfferRow } from '../ledger/index.js';
import type { Holdfast } from '../node/index.js';

/** The one offer that a person means. @throws offer_unknown, usage when several roots or senders have such an offer */
export async function findOffer(
  holdfast: Holdfast,
  handoffId: string,
  options: { readonly attempt?: string; readonly root?: string },
): Promise<OfferRow> {
  const caseId = caseIdOf(handoffId);
  const root = options.root === undefined ? undefined : normalizeAgentUrl(options.root);
  const offers = (await holdfast.ledger.listOffers(holdfast.config.tenant, { caseId })).filter(
    ({ key }) =>
      key.handoffId === handoffId &&
      (root === undefined || key.root === root) &&
      (options.attempt === undefined || String(key.attempt) === options.attempt),
  );
  const last = offers.toSorted((a, b) => b.key.attempt - a.key.attempt)[0];
  if (!last) throw new HoldfastError('offer_unknown', `There is no offer ${handoffId} in this ledger.`);
  const roots = new Set(offers.map(({ key }) => key.root));
  if (roots.size > 1) {
    throw new HoldfastError(
      'usage',
      `Several cases have an offer ${handoffId}. Say which with --root: ${[...roots].join(', ')}.`,
    );
  }
  return last;
}
