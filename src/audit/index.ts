export { type ChainHead, chain, verifyChain } from './chain.js';
export { compareWithLedger } from './compare.js';
export { exportChain, verifyExport } from './export.js';
export { type CaseHead, compareHead, headsOfExport, readHeads, writeHeads } from './heads.js';
export { problemsOf } from './problems.js';
export { replay } from './replay.js';
