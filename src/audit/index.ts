export {
  type ChainedEntry,
  type ChainHead,
  type ChainProblem,
  type ChainVerdict,
  chain,
  verifyChain,
} from './chain.js';
