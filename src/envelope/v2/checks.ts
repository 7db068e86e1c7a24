import { type FieldError, normalizeAgentUrl, parseUtc } from '../../core/index.js';
import { findInline } from '../inline.js';
import type { HandoffEnvelope } from '../model.js';

/** What a JSON Schema cannot say: days that exist, one spelling per URL, and no twins in a list of named things. */
export function checkForm(envelope: HandoffEnvelope): FieldError[] {
  return [...checkTimes(envelope), ...checkUrls(envelope), ...checkTwins(envelope)];
}

function checkTimes(envelope: HandoffEnvelope): FieldError[] {
  const times: [string, string | undefined][] = [
    ['accept_by', envelope.accept_by],
    ['constraints.deadline', envelope.constraints.deadline],
    ...envelope.facts.map((fact, at): [string, string | undefined] => [
      `facts.${at}.observed_at`,
      fact.observed_at,
    ]),
    ...envelope.references.map((each, at): [string, string] => [
      `references.${at}.expires_at`,
      each.expires_at,
    ]),
  ];
  return times
    .filter(([, time]) => time !== undefined && parseUtc(time) === null)
    .map(([path]) => ({ path, problem: 'names a day that does not exist' }));
}

function isNormal(url: string): boolean {
  try {
    return normalizeAgentUrl(url) === url;
  } catch {
    return false;
  }
}

function checkUrls(envelope: HandoffEnvelope): FieldError[] {
  const urls: [string, string][] = [
    ['root', envelope.root],
    ['from_agent', envelope.from_agent],
    ['to_agent', envelope.to_agent],
    ...envelope.chain.hops.map((hop, at): [string, string] => [`chain.hops.${at}`, hop]),
  ];
  return urls
    .filter(([, url]) => !isNormal(url))
    .map(([path]) => ({ path, problem: 'is not in the one spelling of an agent URL' }));
}

function checkTwins(envelope: HandoffEnvelope): FieldError[] {
  const twins = (names: readonly string[], path: (at: number) => string): FieldError[] =>
    names.flatMap((name, at) =>
      names.indexOf(name) === at ? [] : [{ path: path(at), problem: 'is given twice' }],
    );
  return [
    ...twins(
      envelope.references.map((each) => each.url),
      (at) => `references.${at}.url`,
    ),
    ...twins(
      envelope.effects.map((each) => each.key),
      (at) => `effects.${at}.key`,
    ),
  ];
}

/** Bulky content that should be evidence behind a reference. */
export function checkInline(envelope: HandoffEnvelope): FieldError[] {
  const texts = (name: 'done' | 'remaining' | 'open_questions') =>
    envelope[name].map((each, at) => findInline(`${name}.${at}`, each));
  return [
    findInline('goal', envelope.goal),
    ...texts('done'),
    ...texts('remaining'),
    ...envelope.facts.map((fact, at) => findInline(`facts.${at}.value`, fact.value)),
    ...texts('open_questions'),
    findInline('summary.text', envelope.summary.text),
  ].filter((problem) => problem !== null);
}
