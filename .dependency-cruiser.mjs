/** The allowed edges between the rooms under src/. docs/architecture.md explains them. */

/** Imports flow downwards: a room may use the rooms before it, never one after it. */
const ROOMS = [
  'faults',
  'core',
  'protocol',
  'contract',
  'evidence',
  'envelope',
  'trust',
  'ledger',
  'audit',
  'handoff',
  'ask',
  'brief',
  'payment',
  'fence',
  'storage',
  'transport',
  'node',
  'api',
  'console',
  'prove',
  'demo',
  'cli',
];

const domain = `^src/(${ROOMS.slice(0, ROOMS.indexOf('storage')).join('|')})/`;
const anyRoom = `^src/(${ROOMS.join('|')})/`;

/** A package by name, installed or not, with its types. */
const packages = (...names) => `(^|node_modules/)(@types/)?(${names.join('|')})(/|$)`;

const downward = ROOMS.slice(0, -1).map((room, index) => ({
  name: `only-downward-${room}`,
  severity: 'error',
  from: { path: `^src/${room}/` },
  to: { path: `^src/(${ROOMS.slice(index + 1).join('|')})/` },
}));

const forbid = (name, comment, from, to) => ({ name, comment, severity: 'error', from, to });

export default {
  forbidden: [
    ...downward,
    forbid(
      'known-room',
      'Every folder under src/ has its place in the order.',
      { path: '^src/' },
      {
        path: '^src/',
        pathNot: [anyRoom, '^src/index\\.ts$'],
      },
    ),
    forbid(
      'known-room',
      'Every folder under src/ has its place in the order.',
      { path: '^src/', pathNot: [anyRoom, '^src/index\\.ts$'] },
      {},
    ),
    forbid(
      'one-door',
      'Another room is entered only through its index.ts.',
      { path: '^src/([^/]+)/' },
      {
        path: '^src/[^/]+/',
        pathNot: ['^src/$1/', '^src/[^/]+/index\\.ts$'],
      },
    ),
    forbid(
      'one-door-outside',
      'So do the public door, the tests, the examples and the scripts.',
      {
        path: '^(src/index\\.ts$|test/(?!storage/)|examples/|scripts/)',
      },
      { path: '^src/[^/]+/', pathNot: '^src/[^/]+/index\\.ts$' },
    ),
    forbid(
      'one-door-storage-tests',
      'Statements and triggers that guard by themselves can only be shown below the door, whose own checks come first.',
      { path: '^test/storage/' },
      { path: '^src/[^/]+/', pathNot: '^src/([^/]+/index\\.ts$|storage/)' },
    ),
    forbid(
      'public-door-is-top',
      'src/index.ts is for users of the package.',
      { path: '^src/[^/]+/' },
      {
        path: '^src/index\\.ts$',
      },
    ),
    forbid(
      'domain-no-io',
      'The domain touches no Node builtin but crypto.',
      { path: domain },
      {
        dependencyTypes: ['core'],
        pathNot: '^(node:)?crypto$',
      },
    ),
    forbid(
      'domain-no-adapters',
      'What the domain needs from outside comes through ports.',
      { path: domain },
      {
        path: packages(
          '@a2a-js/sdk',
          'better-sqlite3',
          'pg',
          'express',
          'hono',
          '@hono/node-server',
          'undici',
          'pino',
          'commander',
          'yaml',
        ),
      },
    ),
    forbid(
      'sdk-in-transport',
      'Only transport speaks to the A2A SDK.',
      {
        path: '^src/',
        pathNot: '^src/transport/',
      },
      { path: packages('@a2a-js/sdk') },
    ),
    forbid(
      'database-in-storage',
      'Only storage speaks to a database.',
      {
        path: '^src/',
        pathNot: '^src/storage/',
      },
      { path: packages('better-sqlite3', 'pg') },
    ),
    forbid(
      'node-picks-storage',
      'Only node chooses among the storage adapters.',
      {
        path: '^src/',
        pathNot: '^src/(storage|node)/',
      },
      { path: '^src/storage/' },
    ),
    forbid(
      'ledger-is-opaque',
      'To the ledger an envelope is bytes with a digest.',
      { path: '^src/ledger/' },
      {
        path: '^src/(envelope|contract|evidence)/',
      },
    ),
    forbid(
      'prove-by-the-wire',
      "It judges other people's agents, by the wire alone.",
      {
        path: '^src/prove/',
      },
      { path: '^src/(ledger|storage)/' },
    ),
    forbid('no-cycles', 'A cycle has no order in which to read it.', { path: '^src/' }, { circular: true }),
    forbid(
      'resolvable',
      'Nothing is imported that is not there.',
      { path: '^(src|test|scripts|examples)/' },
      {
        couldNotResolve: true,
      },
    ),
    forbid(
      'no-dev-dependency',
      'What ships needs only what is installed with it.',
      { path: '^src/' },
      {
        dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'],
        dependencyTypesNot: ['type-only'],
      },
    ),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    // Type imports count: an edge that only types use is still a room that knows another.
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
      extensions: ['.ts', '.d.ts', '.mjs', '.js', '.json'],
    },
  },
};
