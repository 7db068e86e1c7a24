import type { KindDefinition } from '../ledger/index.js';
import { loopbackAddress } from './loopback.js';

export interface NewAgent {
  /** The agent's own folder. */
  readonly dir: string;
  readonly agent: string;
  readonly url: string;
  /** Path of the ledger file, relative to `dir`, or the URL of a database. */
  readonly ledger: string;
  /** Of the agent's own cases; the usual one where absent. */
  readonly tenant?: string;
  /** Of the kind of case it comes with; `shared` where absent. */
  readonly mode?: KindDefinition['mode'];
}

/** The configuration of a new agent: what it needs at first, with a word on each; every other key has a default. */
export function configTemplate({
  agent,
  url,
  ledger,
  tenant,
  mode = 'shared',
}: Omit<NewAgent, 'dir'>): string {
  const address = loopbackAddress(url);
  const port = address ? address.slice(address.lastIndexOf(':') + 1) : '4100';
  return `# Holdfast: one agent. \`holdfast config explain\` lists every key; \`holdfast config check\` checks this file.

agent: ${text(agent)}
# Peers reach this agent here; it is also its identity in tokens and receipts.
url: ${text(url)}
${tenant === undefined ? '' : `tenant: ${text(tenant)}\n`}# Who owns what: a file, or the URL of a PostgreSQL database. ${mode === 'shared' ? 'Agents that hand cases to each other use the same.' : 'This agent has its own.'}
ledger: ${text(ledger)}

${address ? '' : '# Put a proxy that ends TLS for the URL above in front of this address.\n'}listen:
  host: 127.0.0.1
  port: ${port}

# What may be handed over: a built-in contract, or the path of a module such as ./my-contract.mjs.
contracts:
  - refund-dispute/1
# Of these, what this agent accepts.
receives:
  - refund-dispute/1

# Agents to exchange handoffs with; \`holdfast peer add\` writes here.
peers: []

# Sorts of cases. ${mode === 'shared' ? 'All agents on one ledger must agree on them.' : 'Both sides of a handover say the same mode; it never changes.'}
kinds:
  refund:
    system_of_record: payments
${mode === 'shared' ? '' : `    mode: ${mode}\n`}    contracts:
      - refund-dispute/1
    policy:
      # Most that all refunds on one case may add up to.
      caps:
        refund: 100.00 EUR
      # Whoever accepted a case under a contract that names the operation may start it.
      operations:
        "*": [refund]

network:
  # Addresses on this machine that may be reached; no other private address ever is.
  loopback:${address ? `\n    - ${text(address)}` : ' []'}
`;
}

/** A JSON string is a YAML string; only what needs no quotes goes without. */
function text(value: string): string {
  return /^[A-Za-z./][\w./:-]*$/.test(value) && !value.endsWith(':') ? value : JSON.stringify(value);
}
