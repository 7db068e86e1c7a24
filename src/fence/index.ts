export type { PostgresClient, SqliteDatabase } from './connection.js';
export { type Fences, postgresFences, sqliteFences } from './fences.js';
export { postgresFenceSql } from './postgres.js';
export { FENCE_FREEZE_SQL, FENCE_FUNCTIONS_SQL } from './postgres-functions.js';
export { type FenceToken, type Presentation, present } from './present.js';
export type { FenceProblem, FenceReport } from './report.js';
export type { FenceSource, FenceSpec } from './spec.js';
