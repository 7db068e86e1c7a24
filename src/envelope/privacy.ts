import { toPlain } from './plain-text.js';

/**
 * Recognises personal data and credentials in text that is about to leave. Every pattern has bounded repetitions, so that
 * time grows with the text and not faster. It is the second line: the allow list decides first what may leave at all.
 */

interface PrivacyRule {
  readonly rule: string;
  readonly problem: string;
  readonly pattern: RegExp;
  /** A closer look at a match, to keep ids, amounts and times from being taken for something else. */
  readonly accept?: (match: string) => boolean;
}

const digitsOf = (text: string): string => text.replace(/\D/g, '');

const IBAN_LENGTHS: ReadonlyMap<string, number> = new Map(
  (
    'AD24 AE23 AT20 BE16 BG22 BR29 CH21 CY28 CZ24 DE22 DK18 EE20 ES24 FI18 FR27 GB22 GR27 HR21 HU28 IE22 ' +
    'IL23 IS26 IT27 LI21 LT20 LU20 LV21 MC27 MT31 NL18 NO15 PL28 PT25 RO24 SA24 SE24 SI19 SK24 TR26'
  )
    .split(' ')
    .map((entry) => [entry.slice(0, 2), Number(entry.slice(2))]),
);

function isIban(match: string): boolean {
  const compact = match.replace(/[ -]/g, '').toUpperCase();
  const length = IBAN_LENGTHS.get(compact.slice(0, 2));
  if (length === undefined || compact.length < length) return false;
  const turned = compact.slice(4, length) + compact.slice(0, 4);
  const digits = [...turned].map((char) => Number.parseInt(char, 36)).join('');
  return [...digits].reduce((rest, digit) => (rest * 10 + Number(digit)) % 97, 0) === 1;
}

function passesLuhn(digits: string): boolean {
  const sum = [...digits].reverse().reduce((total, digit, index) => {
    const value = index % 2 === 0 ? Number(digit) : Number(digit) * 2;
    return total + (value > 9 ? value - 9 : value);
  }, 0);
  return sum % 10 === 0;
}

/** Prefix and length of the networks, so that an order number is not one by chance. */
const CARD = /^(?:4\d{12}(?:\d{3}){0,2}|(?:5[1-5]|2[2-7]|35|6[0245])\d{14}|3[47]\d{13}|3[068]\d{12})$/;

function isCard(match: string): boolean {
  const digits = digitsOf(match);
  return CARD.test(digits) && passesLuhn(digits);
}

/** `01.02.2026`, `02/2026` and the like, alone or with what follows. */
const DATE =
  /^\(?(?:\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{2}\/(?:19|20)\d{2})(?!\d)/;
const DECIMAL = /^\+?\d{1,12}\.\d{1,20}$/;
/** `0-1-2-3`: a range or a score. */
const SINGLE_DIGITS = /^\d(?:[/-]\d)+$/;

const isNeitherDateNorAmount = (match: string): boolean => !DATE.test(match) && !DECIMAL.test(match);

/** With a leading zero: dialled at home or, after two, abroad. Documents and articles have such numbers in other lengths. */
function isDialled(match: string): boolean {
  if (!isNeitherDateNorAmount(match) || SINGLE_DIGITS.test(match)) return false;
  const digits = digitsOf(match);
  if (digits.startsWith('00')) return /^00(?:1\d{10}|[2-9]\d{9,13})$/.test(digits);
  // Without any separator only a full national number is taken for one: short digit strings are ids.
  return /\D/.test(match) || (digits.length >= 10 && digits.length <= 12);
}

const hasSecretLook = (match: string): boolean => /\d|[a-z][A-Z]|[^\w\s:=.,-]/.test(match);
const hasTokenLook = (token: string): boolean => /\d|[a-z][A-Z]|=$/.test(token);

/** `user:password` in base64; every other word after `basic` is a word. */
function isBasicCredential(match: string): boolean {
  try {
    return atob(match.replace(/^\w+\s+/, '')).includes(':');
  } catch {
    return false;
  }
}

/** `logo@2x.png` names an image for fine screens. */
const isImageName = (match: string): boolean => /@[1-9]x\.[a-z]{3,4}$/i.test(match);

const RULES: readonly PrivacyRule[] = [
  {
    rule: 'private_key',
    problem: 'holds a private key',
    pattern:
      /-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[A-Za-z0-9+/=\s]{0,20000}(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?/g,
  },
  {
    rule: 'token',
    problem: 'holds a token',
    pattern: /\beyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{0,2000}/g,
  },
  {
    rule: 'token',
    problem: 'holds a token',
    pattern: /\bbearer\s{1,3}[A-Za-z0-9._~+/=-]{12,4000}/gi,
    accept: (match) => hasTokenLook(match.replace(/^\w+\s+/, '')),
  },
  {
    rule: 'token',
    problem: 'holds a token',
    pattern: /\bbasic\s{1,3}[A-Za-z0-9+/]{8,4000}={0,2}/gi,
    accept: isBasicCredential,
  },
  {
    rule: 'api_key',
    problem: 'holds an API key',
    pattern:
      /\b(?:(?:sk|pk|rk)[-_](?:live|test|proj|ant)[-_][A-Za-z0-9_-]{12,200}|sk-[A-Za-z0-9]{20,200}|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{20,100}|github_pat_\w{20,100}|xox[abeprs]-[A-Za-z0-9-]{10,200}|AIza[A-Za-z0-9_-]{30,60}|glpat-[A-Za-z0-9_-]{16,60}|whsec_[A-Za-z0-9+/=]{16,120})/g,
  },
  {
    rule: 'password',
    problem: 'holds a password or secret',
    pattern:
      /\b(?:password|passwd|passwort|pwd|secret|api[ _-]?key|access[ _-]?token|auth[ _-]?token)\b\s{0,3}[:=]\s{0,3}\S{6,200}/gi,
    accept: (match) => hasSecretLook(match.replace(/^[^:=]*[:=]\s*/, '')),
  },
  {
    rule: 'url_secret',
    problem: 'holds a URL with a secret in it',
    pattern:
      /[?&](?:sig|signature|token|access_token|api_key|x-amz-signature|x-goog-signature)=[^&\s]{8,2000}|:\/\/[^\s/:@]{1,64}:[^\s/@]{1,128}@/gi,
  },
  {
    rule: 'email',
    problem: 'looks like an e-mail address',
    // The last label is a word: `package@1.2.3` is a version.
    pattern:
      /(?:"[^"\s]{1,62}"|[\p{L}\p{M}\p{N}._%+'’-]{1,64})@(?:[\p{L}\p{M}\p{N}-]{1,63}\.){1,8}(?:xn--[a-z0-9-]{1,59}|\p{L}[\p{L}\p{M}]{1,62})/giu,
    accept: (match) => !isImageName(match),
  },
  {
    rule: 'iban',
    problem: 'looks like an IBAN',
    pattern: /\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,4})?\b/gi,
    accept: isIban,
  },
  {
    rule: 'card',
    problem: 'looks like a payment card number',
    pattern: /(?<![\w.-])(?:\d(?:[ -]?\d){12,18}|(?:\d{4}\.){3}\d{4})(?![\w-])/g,
    accept: isCard,
  },
  {
    rule: 'phone',
    problem: 'looks like a phone number',
    pattern: /(?<![\w+])\+\s?\(?\d(?:[\s()./-]{0,3}\d){6,14}(?!\d)/g,
    accept: isNeitherDateNorAmount,
  },
  {
    rule: 'phone',
    problem: 'looks like a phone number',
    pattern: /(?<![\w.,:/+-])\(?0(?:[\s()./-]{0,3}\d){7,14}(?!\w|-\w)/g,
    accept: isDialled,
  },
  {
    rule: 'phone',
    problem: 'looks like a phone number',
    pattern: /(?<![\w.-])(?:\([2-9]\d{2}\)\s?|[2-9]\d{2}[ .-])\d{3}[ .-]\d{4}(?!\w|-\w)/g,
  },
  {
    rule: 'phone',
    problem: 'looks like a phone number',
    pattern:
      /\b(?:(?:tele)?phone|tel|mobile|cell|fax|whatsapp|telefon|handy|call(?: me)?(?: back)? (?:at|on))\b(?: (?:number|no|nr|is)){0,2}[\s.:#=]{0,4}\d(?:[\s()./-]{0,3}\d){5,14}(?!\d)/gi,
    accept: (match) => !DATE.test(match.replace(/^\D+/, '')),
  },
];

interface Hit {
  readonly rule: PrivacyRule;
  readonly start: number;
  readonly end: number;
}

/** Where each rule applies, in the original text. What a rule has found is blank for those after it: an IBAN is not also a phone number. */
function findHits(original: string): Hit[] {
  const { text, origin } = toPlain(original);
  const hits: Hit[] = [];
  RULES.reduce(
    (rest, rule) =>
      rest.replace(rule.pattern, (match: string, at: number) => {
        if (rule.accept !== undefined && !rule.accept(match)) return match;
        hits.push({ rule, start: origin(at)[0], end: origin(at + match.length - 1)[1] });
        return ' '.repeat(match.length);
      }),
    text,
  );
  return hits;
}

/** What personal data or credentials the text seems to hold, as problems for people; empty where none. */
export function findPersonalData(text: string): string[] {
  return [...new Set(findHits(text).map(({ rule }) => rule.problem))];
}

/** A transcript with personal data and credentials masked, and how often each rule applied; never what was removed. */
export function redactText(text: string): {
  text: string;
  removed: { rule: string; count: number }[];
} {
  const hits = findHits(text);
  const counts = new Map<string, number>();
  for (const { rule } of hits) counts.set(rule.rule, (counts.get(rule.rule) ?? 0) + 1);
  const pieces: string[] = [];
  let at = 0;
  for (const { rule, start, end } of hits.sort((a, b) => a.start - b.start)) {
    pieces.push(text.slice(at, start), `[${rule.rule} removed]`);
    at = end;
  }
  pieces.push(text.slice(at));
  return { text: pieces.join(''), removed: [...counts].map(([rule, count]) => ({ rule, count })) };
}
