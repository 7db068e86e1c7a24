const MAX_CHARACTERS = 120;
const FALLBACK = 'evidence';
/** Names that Windows gives to devices, with or without an extension. */
const DEVICE = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)/i;

function isUnsafe(char: string): boolean {
  const code = char.codePointAt(0) ?? 0;
  // Control characters, then those that turn the reading direction round and so hide the true extension.
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return true;
  if (code === 0x61c || code === 0x200e || code === 0x200f) return true;
  // Line and paragraph separators come right before the embeddings.
  if (code >= 0x2028 && code <= 0x202e) return true;
  if (code >= 0x2066 && code <= 0x2069) return true;
  // Half a surrogate pair cannot be written as UTF-8.
  if (code >= 0xd800 && code <= 0xdfff) return true;
  return '/\\:*?"<>|'.includes(char);
}

/** A plain file name that means nothing to any file system, shell or header; the extension is kept. */
export function sanitizeFilename(name: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? '';
  const safe = [...last.normalize('NFC')].map((char) => (isUnsafe(char) ? '_' : char));
  const trimmed = trimDots(safe.join(''));
  const named = DEVICE.test(trimmed) ? `_${trimmed}` : trimmed;
  const characters = [...named];
  if (characters.length <= MAX_CHARACTERS) return named === '' ? FALLBACK : named;
  const extension = [...(/\.[A-Za-z0-9]{1,10}$/.exec(named)?.[0] ?? '')];
  return [...characters.slice(0, MAX_CHARACTERS - extension.length), ...extension].join('');
}

/** Leading dots hide a file, trailing dots and spaces vanish on some systems. */
function trimDots(name: string): string {
  let [start, end] = [0, name.length];
  while (start < end && ' .'.includes(name.charAt(start))) start += 1;
  while (end > start && ' .'.includes(name.charAt(end - 1))) end -= 1;
  return name.slice(start, end);
}
