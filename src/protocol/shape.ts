import { type FieldError, isJsonObject, type JsonObject, type JsonValue, tidy } from '../core/index.js';

/** What is wrong with a value, or null. */
export type Check = (value: JsonValue) => string | null;
/** The fields of an object, with what each has to be. */
export type Shape = Readonly<Record<string, Check>>;

export const matching =
  (pattern: RegExp, problem: string): Check =>
  (value) =>
    typeof value === 'string' && pattern.test(value) ? null : problem;

export const oneOf =
  (...known: readonly string[]): Check =>
  (value) =>
    typeof value === 'string' && known.includes(value) ? null : `must be ${known.join(' or ')}`;

export const isObject: Check = (value) => (isJsonObject(value) ? null : 'must be an object');
export const isList: Check = (value) => (Array.isArray(value) ? null : 'must be an array');
export const isFlag: Check = (value) => (typeof value === 'boolean' ? null : 'must be true or false');

/** Every way in which an object is not of a shape: a field too few, too many, or of another form. */
export function problemsOf(value: JsonObject, shape: Shape, optional: Shape = {}, at = ''): FieldError[] {
  const problems: FieldError[] = [];
  for (const [name, check] of Object.entries({ ...shape, ...optional })) {
    const given = Object.hasOwn(value, name);
    if (!given && Object.hasOwn(optional, name)) continue;
    const problem = given ? check(value[name] as JsonValue) : 'is required';
    if (problem !== null) problems.push({ path: `${at}${name}`, problem });
  }
  for (const name of Object.keys(value)) {
    if (Object.hasOwn(shape, name) || Object.hasOwn(optional, name)) continue;
    problems.push({ path: `${at}${tidy(name, 64)}`, problem: 'is not a known field' });
  }
  return problems;
}
