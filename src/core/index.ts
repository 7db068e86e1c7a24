export { type Clock, systemClock, toUtc } from './clock.js';
export {
  type Actor,
  ERROR_TABLE,
  type ErrorClass,
  type ErrorCode,
  type ErrorDetails,
  type FieldError,
  HoldfastError,
  isErrorCode,
  isHoldfastError,
  type Retry,
} from './errors.js';
export {
  type AcceptanceKey,
  CASE_ID_PATTERN,
  type CaseRef,
  handoffIdOf,
  messageIdOf,
  newId,
  normalizeAgentUrl,
} from './ids.js';
export { canonical, digestOf, type JsonObject, type JsonValue, sha256Hex } from './json.js';
export { DEFAULT_LIMITS, type Limits } from './limits.js';
export { type Logger, silentLogger } from './logger.js';
export { AMOUNT_PATTERN, addAmounts, CURRENCY_PATTERN, compareAmounts, type Money } from './money.js';
export { type JsonProblem, parseStrictJson } from './strict-json.js';
export { parseUtc, UTC_PATTERN } from './time.js';
export type { Withheld } from './withheld.js';
