import { type FieldError, isJsonObject, type JsonValue } from '../core/index.js';

/** One fact's value as JSON, bytes. What is longer belongs behind a reference. */
const MAX_VALUE_BYTES = 4096;
const MAX_STRING = 2000;
const MAX_ITEMS = 100;
/** No word or number of a text is this long; encoded bytes are. */
const ENCODED_LENGTH = 512;
const ENCODED = new RegExp(`[A-Za-z0-9+/_-]{${ENCODED_LENGTH}}`);

/** `Ann: hello`, optionally after a time or a stamp in brackets. */
const SPOKEN_LINE =
  /^\s{0,8}(?:\[[^\]\n]{1,40}\]\s{0,4}|\d{1,2}:\d{2}(?::\d{2})?\s{1,4})?([A-Za-z][\w .'-]{0,30}):\s{1,4}\S/;
const MIN_SPOKEN_LINES = 4;
const MIN_TURNS = 3;
const SPEAKER_KEYS = ['role', 'speaker', 'author', 'sender', 'from', 'user'];
const SPEECH_KEYS = ['content', 'text', 'message', 'body', 'utterance'];

/** Several labelled lines in which a speaker comes back: a form with labels has each label once. */
function isTranscript(text: string): boolean {
  const lines = text.split('\n');
  if (lines.length < MIN_SPOKEN_LINES) return false;
  const speakers = lines
    .map((line) => SPOKEN_LINE.exec(line)?.[1]?.toLowerCase())
    .filter((speaker) => speaker !== undefined);
  return speakers.length >= MIN_SPOKEN_LINES && new Set(speakers).size < speakers.length;
}

function isTurn(value: JsonValue): boolean {
  if (!isJsonObject(value)) return false;
  const keys = Object.keys(value).map((key) => key.toLowerCase());
  return SPEAKER_KEYS.some((key) => keys.includes(key)) && SPEECH_KEYS.some((key) => keys.includes(key));
}

function problemOf(value: JsonValue): string | null {
  if (typeof value === 'string') {
    if (value.length > MAX_STRING) return 'is too long to be inline';
    // Almost every text is shorter, and need not be searched.
    const encoded = value.length >= ENCODED_LENGTH && ENCODED.test(value);
    if (encoded || /^data:[^,\s]{0,100};base64,/i.test(value)) return 'holds encoded content';
    return isTranscript(value) ? 'looks like a transcript' : null;
  }
  if (!Array.isArray(value)) return null;
  if (value.length > MAX_ITEMS) return 'holds too many items to be inline';
  return value.filter(isTurn).length >= MIN_TURNS ? 'looks like a transcript' : null;
}

/** Bulk that belongs behind a reference: long or encoded content, and whole transcripts in any dress. */
export function findInline(path: string, value: JsonValue): FieldError | null {
  const waiting: JsonValue[] = [value];
  for (let each = waiting.pop(); each !== undefined; each = waiting.pop()) {
    const problem = problemOf(each);
    if (problem !== null) return { path, problem };
    if (typeof each === 'object' && each !== null) waiting.push(...Object.values(each));
  }
  const bytes = Buffer.byteLength(JSON.stringify(value));
  return bytes > MAX_VALUE_BYTES ? { path, problem: `must be at most ${MAX_VALUE_BYTES} bytes` } : null;
}
