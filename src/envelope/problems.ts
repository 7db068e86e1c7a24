import type * as z from 'zod';
import { type ErrorCode, type FieldError, HoldfastError, MAX_FIELD_ERRORS, tidy } from '../core/index.js';

/** A path can hold a key that the sender made up. */
const MAX_CHARS = 200;

function describe(issue: z.core.$ZodIssue): FieldError[] {
  const path = issue.path.map(String).join('.');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      path: path === '' ? key : `${path}.${key}`,
      problem: 'is not a known field',
    }));
  }
  if (issue.code === 'invalid_key')
    return [{ path, problem: issue.issues[0]?.message ?? 'is not a valid name' }];
  if (issue.code === 'too_big' && issue.origin === 'array')
    return [{ path, problem: `must hold at most ${issue.maximum}` }];
  // Zod keeps the input off its issues, so a missing value shows only in the message.
  if (issue.code === 'invalid_type' && issue.message.endsWith('received undefined'))
    return [{ path, problem: 'is required' }];
  return [{ path, problem: issue.message }];
}

/** What is wrong with a document, field by field; never a value. */
export function fieldsOf(error: z.ZodError): FieldError[] {
  return error.issues
    .flatMap(describe)
    .map(({ path, problem }) => ({ path: tidy(path, MAX_CHARS), problem: tidy(problem, MAX_CHARS) }));
}

/** An error that names the first three fields and counts all in `data.problems`. */
export function documentError(
  code: ErrorCode,
  fields: readonly FieldError[],
  data: Readonly<Record<string, string | number>> = {},
): HoldfastError {
  return new HoldfastError(code, undefined, {
    fields: fields.slice(0, MAX_FIELD_ERRORS),
    data: { ...data, problems: fields.length },
  });
}
