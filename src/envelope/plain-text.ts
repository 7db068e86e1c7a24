/** Marks that are not drawn, and so hide a number from the patterns but not from a reader. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}|\p{Cf}/gu;

/** Decimal digits of any script come in rows of ten that begin at a code ending in 0 or 6. */
function asciiDigit(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  const last = code % 16;
  const startsAtZero = last < 10 && /\p{Nd}/u.test(String.fromCodePoint(code - last));
  return String(startsAtZero ? last : last - 6);
}

/** One character as a reader takes it: full-width, circled and foreign digits, odd spaces and dashes are the plain ones. */
function plainForm(char: string): string {
  return char
    .normalize('NFKC')
    .replace(INVISIBLE, '')
    .replace(/\p{Nd}/gu, asciiDigit)
    .replace(/[\p{Pd}\u2212]/gu, '-');
}

export interface PlainText {
  readonly text: string;
  /** Where each unit of the plain text came from, as `[start, end)` in the original. */
  origin(unit: number): readonly [start: number, end: number];
}

/** The text as the patterns need it, with the way back to where it came from. */
export function toPlain(text: string): PlainText {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is meant
  if (/^[\u0000-\u007f]*$/.test(text)) return { text, origin: (unit) => [unit, unit + 1] };
  const starts: number[] = [];
  const ends: number[] = [];
  const forms: string[] = [];
  const known = new Map<string, string>();
  let at = 0;
  for (const char of text) {
    const form = char < '\u0080' ? char : (known.get(char) ?? plainForm(char));
    known.set(char, form);
    forms.push(form);
    for (let unit = 0; unit < form.length; unit += 1) {
      starts.push(at);
      ends.push(at + char.length);
    }
    at += char.length;
  }
  return { text: forms.join(''), origin: (unit) => [starts[unit] ?? at, ends[unit] ?? at] };
}
