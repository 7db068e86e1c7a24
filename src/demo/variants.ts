import type { Variant } from './variant.js';
import { HAPPY, V1b, V2, V3, V4, V9, V10, V12, V14 } from './variants-accepted.js';
import { V1, V1c, V5, V6, V7, V8, V15 } from './variants-refused.js';

const VARIANTS: Readonly<Record<string, Variant>> = {
  V1,
  V1b,
  V1c,
  V2,
  V3,
  V4,
  V5,
  V6,
  V7,
  V8,
  V9,
  V10,
  V12,
  V14,
  V15,
};

/** Name and title of every variant, in the order of the scenario. */
export function listVariants(): { readonly name: string; readonly title: string }[] {
  return Object.entries(VARIANTS).map(([name, { title }]) => ({ name, title }));
}

/**
 * The variant with this name in whatever case, or the plain scenario, which has none, where no name is given; `null` where there is
 * no such variant.
 */
export function findVariant(wanted: string | undefined): (Variant & { readonly name: string | null }) | null {
  if (wanted === undefined) return { ...HAPPY, name: null };
  const found = Object.entries(VARIANTS).find(([name]) => name.toLowerCase() === wanted.toLowerCase());
  return found ? { ...found[1], name: found[0] } : null;
}
