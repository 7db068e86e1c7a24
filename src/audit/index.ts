export {
  type ChainedEntry,
  type ChainHead,
  type ChainProblem,
  type ChainVerdict,
  chain,
  verifyChain,
} from './chain.js';
export { compareWithLedger } from './compare.js';
export { type ExportVerdict, exportChain, verifyExport } from './export.js';
export {
  type ReplayedCase,
  type ReplayedDecision,
  type ReplayedEffect,
  type ReplayedNote,
  type ReplayedOffer,
  type ReplayedOwnership,
  type ReplayedWork,
  replay,
} from './replay.js';
