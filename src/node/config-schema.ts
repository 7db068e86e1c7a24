import { z } from 'zod';
import {
  CONTRACT_ID_PATTERN,
  DEFAULT_LIMITS,
  NAME_PATTERN,
  normalizeAgentUrl,
  OPERATION_PATTERN,
  parseMoney,
} from '../core/index.js';
import { DEFAULT_EVIDENCE_TTL_MS } from '../evidence/index.js';
import { targetProblem } from '../storage/index.js';
import { absent, count, duration, key, optional, section, size, text } from './config-keys.js';
import { loopbackAddress } from './loopback.js';

/**
 * The configuration file, once: what a key may hold, its default and what it means all stand here. `config explain`, the reference
 * page and the validator read this schema, so that none can say something else than the others.
 */

const agentUrl = z.string({ error: 'must be a URL' }).transform((value, context) => {
  try {
    const url = normalizeAgentUrl(value);
    if (url.startsWith('https:') || loopbackAddress(url)) return url;
  } catch {
    // Not a URL at all: the same sentence says what is wanted.
  }
  context.addIssue({
    code: 'custom',
    message: 'must be an https URL (or http on this machine) without credentials, query or fragment',
  });
  return z.NEVER;
});
const name = text(NAME_PATTERN, 'must be a name: letters, digits, . _ - (at most 64)');
const path = z.string({ error: 'must be a file path' }).min(1, { error: 'must be a file path' });
const contractId = text(CONTRACT_ID_PATTERN, 'must be a contract id, name/version, such as refund-dispute/1');
const operation = text(OPERATION_PATTERN, 'must be the name of an operation, such as refund');
const ledger = z.string({ error: 'must be a file path or a URL' }).superRefine((value, context) => {
  const problem = targetProblem(value);
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
});
const hostAndPort = text(
  /^(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):\d{1,5}$/,
  'must be host:port, such as 127.0.0.1:4200',
);

const money = z
  .string({ error: 'must be an amount with its currency, such as 100.00 EUR' })
  .transform((value, context) => {
    const parsed = parseMoney(value);
    if (parsed !== null) return parsed;
    context.addIssue({ code: 'custom', message: 'must be an amount with its currency, such as 100.00 EUR' });
    return z.NEVER;
  });

const thumbprint = text(
  /^[A-Za-z0-9_-]{43}$/,
  'must be the thumbprint that `holdfast identity` prints on the other side (43 characters)',
);

const peer = z.strictObject({
  url: key(agentUrl, 'URL', "The peer agent's URL, exactly as it signs its tokens."),
  key: key(
    thumbprint,
    'thumbprint',
    "RFC 7638 SHA-256 thumbprint of the peer's key; a peer that shows another key is refused.",
  ),
  next_key: absent(
    thumbprint,
    'thumbprint',
    'Thumbprint of the key that the peer is about to change to; accepted beside `key`.',
  ),
  contracts: optional(
    z.array(contractId),
    'list of name/version',
    [],
    'Contracts that may pass between us, either way.',
  ),
  skills: optional(
    z.array(name),
    'list of skill ids',
    [],
    'Skills of the peer that we may use, and ours that it may use.',
  ),
  tenant: absent(name, 'name', 'The tenant to which the peer belongs; `tenant` of this node where absent.'),
});

const kind = z.strictObject({
  system_of_record: key(
    z.string({ error: 'must name the system that holds the business facts' }).min(1).max(200),
    'text',
    'Where the business facts of such a case live. The record of ownership is this ledger.',
  ),
  mode: optional(
    z.enum(['shared', 'separate'], { error: 'must be `shared` or `separate`' }),
    '`shared` or `separate`',
    'shared',
    '`shared`: both agents use one ledger, and the acceptance itself moves the owner. `separate`: each agent has a ledger of its own, and the sender lets go when it holds the signed receipt. Both sides configure the same; it never changes.',
  ),
  contracts: optional(
    z.array(contractId),
    'list of name/version',
    [],
    'Contracts under which such a case may be handed over.',
  ),
  waiting: optional(
    z.enum(['blocking', 'queued'], { error: 'must be `blocking` or `queued`' }),
    '`blocking` or `queued`',
    'blocking',
    'How this agent hands over such a case where a call does not say: `blocking` waits for the decision, `queued` only until the receiver has the offer. Not stored in the ledger.',
  ),
  reader: absent(
    path,
    'path',
    "A module whose default export reads a case of this kind from the system of record: needed where one of the contracts is thin. It is this agent's alone, and not stored in the ledger.",
  ),
  policy: section({
    caps: optional(
      z.record(operation, money),
      'map of operation to amount',
      {},
      'Most that all effects of an operation on one case may add up to, such as `refund: 100.00 EUR`.',
    ),
    prohibitions: optional(z.array(operation), 'list of operations', [], 'Operations that nobody may start.'),
    operations: optional(
      z.record(
        z.union([z.literal('*'), agentUrl], { error: 'must be an agent URL or *' }),
        z.array(operation),
      ),
      'map of agent URL to operations',
      {},
      'Which agent may start which operations. `*` is any agent that accepted the case under a contract that names the operation.',
    ),
  }),
  limits: section({
    max_hops: count(
      2,
      { min: 1, max: 32 },
      'Agents through which a case may have passed when it is offered.',
    ),
    max_tasks: count(5, { min: 1, max: 1000 }, 'Handovers that a case may see in all.'),
    accept_within: duration(
      3_600_000,
      { minMs: 1000, maxMs: 30 * 86_400_000 },
      'Time from offer to its `accept_by`.',
    ),
    effect_limit: duration(
      300_000,
      { minMs: 1000, maxMs: 86_400_000 },
      'How long an effect may stay `started` before it counts as `unknown`.',
    ),
  }),
});

const MIB = 1024 * 1024;
const d = DEFAULT_LIMITS;

export const configSchema = z.strictObject({
  agent: key(name, 'name', "The agent's name, shown on its card."),
  url: key(
    agentUrl,
    'URL',
    'The public URL at which peers reach this agent; its identity in tokens and receipts.',
  ),
  tenant: optional(name, 'name', 'default', "The tenant of this agent's own cases."),
  vendor: optional(
    text(/^[a-z0-9][a-z0-9-]{0,31}$/, 'must be lower-case letters, digits and -'),
    'name',
    'holdfast',
    'Vendor name in the media type of envelopes; both sides must use the same.',
  ),
  ledger: optional(
    ledger,
    'path or URL',
    'ledger.db',
    'What records who owns what: an SQLite file, relative to this file, or a PostgreSQL database, `postgres://user@host/name`. Agents that hand cases of a `shared` kind to each other use the same.',
  ),
  durability: optional(
    z.enum(['standard', 'strict'], { error: 'must be `standard` or `strict`' }),
    '`standard` or `strict`',
    'standard',
    'What becomes of a database that can lose what it has committed, such as one with an asynchronous standby: `standard` says so in the log, `strict` refuses it.',
  ),
  postgres: section({
    connections: count(
      10,
      { min: 1, max: 1000 },
      'Connections of this node to PostgreSQL; all nodes together stay below `max_connections` of the server.',
    ),
    connect_timeout: duration(
      5_000,
      { minMs: 100, maxMs: 60_000 },
      'Time for one connection to PostgreSQL, and for waiting until one is free.',
    ),
    statement_timeout: duration(
      10_000,
      { minMs: 100, maxMs: 300_000 },
      'Time for one statement in PostgreSQL.',
    ),
    lock_timeout: duration(
      3_000,
      { minMs: 10, maxMs: 60_000 },
      'Time for waiting until another writer has finished with the same case.',
    ),
    standby_wait: duration(
      5_000,
      { minMs: 100, maxMs: 300_000 },
      'Time that a commit may wait for a synchronous standby; then its outcome is unknown, and is found out.',
    ),
  }),
  listen: section({
    host: optional(z.string().min(1), 'host', '127.0.0.1', 'Address on which the node listens.'),
    port: count(4100, { min: 0, max: 65_535 }, 'Port on which the node listens; 0 takes a free one.'),
  }),
  shutdown: duration(
    8_000,
    { minMs: 100, maxMs: 3_600_000 },
    'How long a node that is told to stop waits for requests, deliveries and handlers under way.',
  ),
  contracts: optional(
    z.array(path),
    'list of names or paths',
    [],
    'Contracts this agent knows: a built-in one such as `refund-dispute/1`, or the path of a module whose default export is one or several.',
  ),
  receives: optional(
    z.array(contractId),
    'list of name/version',
    [],
    'Contracts under which this agent accepts handoffs.',
  ),
  handlers: absent(
    path,
    'path',
    'Module whose default export, `(holdfast) => void`, registers what this agent does with what it accepts.',
  ),
  peers: z.array(peer).prefault([]),
  kinds: z.record(name, kind).prefault({}),
  network: section({
    loopback: optional(
      z.array(hostAndPort),
      'list of host:port',
      [],
      'Loopback addresses that may be reached, for agents on one machine. No other private address ever is.',
    ),
    hosts: optional(
      z.array(z.string().min(1)),
      'list of hosts',
      [],
      'Hosts that may be reached, `*.example.com` for all below one; every public one where empty.',
    ),
    ports: optional(
      z.array(z.int().min(1).max(65_535)),
      'list of ports',
      [443],
      'Ports that may be reached on other machines.',
    ),
  }),
  evidence: section({
    dir: optional(path, 'path', 'evidence', 'Folder that holds evidence. Relative to this file.'),
    url_ttl: duration(
      DEFAULT_EVIDENCE_TTL_MS,
      { minMs: 60_000, maxMs: 30 * 86_400_000 },
      'How long a signed evidence URL works. An offer is not sent if one would expire before its `accept_by`.',
    ),
  }),
  push: section({
    give_up: duration(
      7 * 86_400_000,
      { minMs: 60_000, maxMs: 30 * 86_400_000 },
      'How old a push notification gets before a failed attempt is its last; then it waits for a person.',
    ),
    keep_dead: duration(
      30 * 86_400_000,
      { minMs: 60_000, maxMs: 365 * 86_400_000 },
      'How long a push notification that was given up is kept.',
    ),
    hear_of_offers: optional(
      z.boolean({ error: 'must be true or false' }),
      'boolean',
      false,
      'Whether a receiver that has not decided an offer is asked to tell of its task. This node must be reachable for it; without it, or where nothing comes, the task is read now and then.',
    ),
  }),
  limits: section({
    max_body: size(d.maxBodyBytes, 64 * MIB, 'One HTTP body.'),
    max_envelope: size(d.maxEnvelopeBytes, 16 * MIB, 'One envelope as JSON.'),
    max_depth: count(d.maxDepth, { min: 4, max: 256 }, 'Nesting of JSON, levels.'),
    max_nodes: count(d.maxNodes, { min: 100, max: 1_000_000 }, 'Values in one JSON document.'),
    max_string: size(d.maxStringBytes, 16 * MIB, 'One JSON string.'),
    max_key: size(d.maxKeyBytes, 4096, 'One key of a JSON object.'),
    max_evidence: size(d.maxEvidenceBytes, 1024 * MIB, 'One piece of evidence.'),
    evidence_timeout: duration(
      d.evidenceTimeoutMs,
      { minMs: 100, maxMs: 600_000 },
      'All of one download of evidence.',
    ),
    max_peer_answer: size(d.maxPeerAnswerBytes, 64 * MIB, 'One answer of a peer: card, key set or task.'),
    peer_timeout: duration(d.peerTimeoutMs, { minMs: 100, maxMs: 600_000 }, 'One request to a peer.'),
    peer_requests_per_minute: count(
      d.peerRequestsPerMinute,
      { min: 1, max: 1_000_000 },
      'Requests that one peer may make in a minute.',
    ),
  }),
  log: section({
    level: optional(
      z.enum(['error', 'warn', 'info', 'silent'], { error: 'must be one of error, warn, info, silent' }),
      'level',
      'info',
      'What is logged to stderr, as JSON: `error`, `warn`, `info` or `silent`. Never content, never credentials.',
    ),
  }),
});

/** The file as parsed and checked, defaults filled in: durations in milliseconds, sizes in bytes. */
export type Config = z.output<typeof configSchema>;
