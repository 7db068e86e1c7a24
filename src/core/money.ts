/** An amount as a decimal string with its ISO 4217 currency; never a float, so that a digest and a sum are exact. */
export interface Money {
  readonly amount: string;
  readonly currency: string;
}

export const AMOUNT_PATTERN = /^(?:0|[1-9]\d{0,14})(?:\.\d{1,4})?$/;
export const CURRENCY_PATTERN = /^[A-Z]{3}$/;

/** Money from `49.00 EUR`, as people write it; `null` where the text is anything else. */
export function parseMoney(text: string): Money | null {
  const [amount = '', currency = '', ...rest] = text.split(' ');
  const valid = rest.length === 0 && AMOUNT_PATTERN.test(amount) && CURRENCY_PATTERN.test(currency);
  return valid ? { amount, currency } : null;
}

/** `49.00 EUR` */
export function formatMoney({ amount, currency }: Money): string {
  return `${amount} ${currency}`;
}

/** Four decimal places hold every ISO 4217 currency; amounts compare and add as integers of that unit. */
const SCALE = 4;

/** As long as it likes: a sum of amounts can have more digits than any of them may. */
const DECIMAL_PATTERN = /^\d+(?:\.\d{1,4})?$/;

function toUnits(amount: string): bigint {
  if (!DECIMAL_PATTERN.test(amount)) throw new RangeError('not a decimal amount');
  const [whole = '0', fraction = ''] = amount.split('.');
  return BigInt(whole + fraction.padEnd(SCALE, '0'));
}

/** Sum of decimal amounts. @throws RangeError when one is not a decimal amount */
export function addAmounts(amounts: readonly string[]): string {
  const units = amounts
    .reduce((sum, amount) => sum + toUnits(amount), 0n)
    .toString()
    .padStart(SCALE + 1, '0');
  const fraction = units.slice(-SCALE).replace(/0+$/, '').padEnd(2, '0');
  return `${units.slice(0, -SCALE)}.${fraction}`;
}

/** -1, 0 or 1, as decimal numbers: `49` equals `49.00`. Takes sums too. @throws RangeError when one is not a decimal number */
export function compareAmounts(a: string, b: string): -1 | 0 | 1 {
  const [x, y] = [toUnits(a), toUnits(b)];
  return x < y ? -1 : x > y ? 1 : 0;
}
