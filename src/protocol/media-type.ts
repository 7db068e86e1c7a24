import { DEFAULT_VENDOR } from './names.js';

/** Without parameters, in lower case: media types compare like that (RFC 9110 section 8.3.1). */
export function bareMediaType(text: string): string {
  return (text.split(';', 1)[0] ?? '').trim().toLowerCase();
}

/** The version digits in an envelope's media type, as written; null for any other media type. */
export function envelopeVersionOf(mediaType: string, vendor: string = DEFAULT_VENDOR): string | null {
  const bare = bareMediaType(mediaType);
  const [start, end] = [`application/vnd.${vendor.toLowerCase()}.handoff.v`, '+json'];
  if (!bare.startsWith(start) || !bare.endsWith(end)) return null;
  const version = bare.slice(start.length, -end.length);
  return /^[0-9]+$/.test(version) ? version : null;
}

/** Whether it is that of an answer to a question, of whatever version. */
export function isAnswerMediaType(mediaType: string): boolean {
  return /^application\/vnd\.holdfast\.answer\.v[0-9]+\+json$/.test(bareMediaType(mediaType));
}

/** Whether it is that of a control message, of whatever version. */
export function isControlMediaType(mediaType: string): boolean {
  return /^application\/vnd\.holdfast\.control\.v[0-9]+\+json$/.test(bareMediaType(mediaType));
}
