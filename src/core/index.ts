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
  MAX_FIELD_ERRORS,
  type Retry,
} from './errors.js';
export {
  type AcceptanceKey,
  answerIdOf,
  CASE_ID_PATTERN,
  type CaseRef,
  caseIdOf,
  handoffIdOf,
  isSameCase,
  messageIdOf,
  newId,
  normalizeAgentUrl,
} from './ids.js';
export { canonical, digestOf, isJsonObject, type JsonObject, type JsonValue, sha256Hex } from './json.js';
export { DEFAULT_LIMITS, type Limits } from './limits.js';
export { type Logger, silentLogger } from './logger.js';
export {
  AMOUNT_PATTERN,
  addAmounts,
  CURRENCY_PATTERN,
  compareAmounts,
  formatMoney,
  type Money,
  parseMoney,
} from './money.js';
export {
  AGENT_URL_PATTERN,
  CODE_PATTERN,
  CONTRACT_ID_PATTERN,
  HANDOFF_ID_PATTERN,
  MEDIA_TYPE_PATTERN,
  NAME_PATTERN,
  OPERATION_PATTERN,
  SHA256_PATTERN,
  SKILL_PATTERN,
} from './patterns.js';
export { inTime, pause, pauseAbout } from './pause.js';
export { actsFor, PERSON_ID_PATTERN, type Person, parsePerson, personOwner } from './persons.js';
export { parseStrictJson } from './strict-json.js';
export { tidy } from './text.js';
export { isWithin, parseUtc, UTC_PATTERN } from './time.js';
export type { Withheld } from './withheld.js';
