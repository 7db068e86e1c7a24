import { join } from 'node:path';
import Database from 'better-sqlite3';
import * as z from 'zod';
import {
  accept,
  type CaseReader,
  type Contract,
  type ContractDefinition,
  defineContract,
  type HandoffHandler,
  type Holdfast,
  openHoldfast,
  reject,
} from '../../src/index.js';
import type { Task } from '../../src/protocol/index.js';
import { freePort, temporaryFolder } from '../cli/support.js';

const amount = z.strictObject({ amount: z.string(), currency: z.string() });

/** A thin contract about cases that both sides have in one database. */
export function reviewContract(change: Partial<ContractDefinition> = {}): Contract {
  return defineContract({
    name: 'refund-review',
    version: 1,
    thin: true,
    skill: { id: 'review', name: 'Reviews', description: 'Reviews refunds.', tags: ['refund'] },
    purpose: 'Review a refund that is in the payment system.',
    facts: {
      payment: {
        schema: z.string(),
        required: true,
        verified: true,
        sources: ['payments'],
        loggable: true,
        why: 'Read.',
      },
      disputed: { schema: amount, required: true, why: 'Read; the sum itself is not logged.' },
      remark: { schema: z.string(), required: false, loggable: true, why: 'Read.' },
    },
    allow: [],
    constraints: { deadline: false, caps: ['refund'], prohibitions: ['publish'] },
    operations: ['refund'],
    evidence: { min: 0, max: 0, mediaTypes: [], maxBytes: 1 },
    accept: ({ facts, envelope }) => {
      const { caps } = envelope.constraints as { caps: Record<string, { amount: string }> };
      const disputed = facts.disputed as { amount: string };
      return Number(disputed.amount) <= Number(caps.refund?.amount)
        ? accept()
        : reject('contract_refused', 'It is more than may be refunded.');
    },
    ...change,
  });
}

/** The system of record that both agents have access to, each with a connection of its own. */
class Payments {
  readonly #file: string;
  readonly #db: Database.Database;
  readonly #connections: Database.Database[] = [];

  constructor(folder: string) {
    this.#file = join(folder, 'payments.db');
    this.#db = new Database(this.#file);
    this.#db.exec('CREATE TABLE disputes (case_id TEXT PRIMARY KEY, payment TEXT, amount TEXT, remark TEXT)');
  }

  put(caseId: string, payment: string | null, sum: string, remark: string | null = null): void {
    const sql = 'INSERT OR REPLACE INTO disputes VALUES (?, ?, ?, ?)';
    this.#db.prepare(sql).run(caseId, payment, sum, remark);
  }

  /** Reads as an agent of its own, and tells `onRead` of it. */
  reader(onRead: (caseId: string) => void = () => {}): CaseReader {
    const db = new Database(this.#file, { readonly: true });
    this.#connections.push(db);
    const find = db.prepare<[string], Record<'payment' | 'amount' | 'remark', string | null>>(
      'SELECT payment, amount, remark FROM disputes WHERE case_id = ?',
    );
    return ({ caseId }) => {
      onRead(caseId);
      const row = find.get(caseId);
      if (!row) return null;
      const { payment, amount: sum, remark } = row;
      const fact = (key: string, value: string | object) => ({
        key,
        value: value as never,
        source: 'payments',
        verified: true,
      });
      return {
        facts: [
          ...(payment === null ? [] : [fact('payment', payment)]),
          fact('disputed', { amount: sum ?? '0', currency: 'EUR' }),
          ...(remark === null ? [] : [fact('remark', remark)]),
          fact('customer', 'Ann Meyer, +49 170 1234567'),
        ],
      };
    };
  }

  close(): void {
    for (const db of [this.#db, ...this.#connections]) db.close();
  }
}

export interface PairOptions {
  /** What the configuration says under `ledger`. */
  readonly ledger: string;
  readonly contract?: Contract;
  readonly handler?: HandoffHandler;
  /** `null` for none. */
  readonly readers?: { readonly triage?: CaseReader | null; readonly billing?: CaseReader | null };
  readonly prohibitions?: readonly string[];
}

export interface ThinPair {
  readonly triage: Holdfast;
  readonly billing: Holdfast;
  readonly payments: Payments;
  /** Delivers raw message JSON to billing, under the name of triage. */
  deliver(message: string): Promise<Task>;
  close(): Promise<void>;
}

/** Triage and billing on one ledger, both running, with a thin contract between them. */
export async function startThinPair(options: PairOptions): Promise<ThinPair> {
  const folder = temporaryFolder();
  const payments = new Payments(folder.path);
  const ports = { triage: await freePort(), billing: await freePort() };
  const urlOf = (name: 'triage' | 'billing') => `http://127.0.0.1:${ports[name]}`;
  const contract = options.contract ?? reviewContract();
  const keys: Record<string, string> = {};
  const configOf = (name: 'triage' | 'billing') => {
    const peer = name === 'triage' ? 'billing' : 'triage';
    return {
      agent: name,
      url: urlOf(name),
      ledger: options.ledger,
      kinds: {
        refund: {
          system_of_record: 'payments',
          contracts: [contract.id],
          policy: {
            caps: { refund: '100.00 EUR' },
            prohibitions: [...(options.prohibitions ?? ['publish'])],
            operations: { '*': ['refund'] },
          },
        },
      },
      peers: [
        {
          url: urlOf(peer),
          key: keys[peer] ?? 'x'.repeat(43),
          contracts: [contract.id],
          skills: [contract.skill.id],
        },
      ],
      network: { loopback: [urlOf('triage'), urlOf('billing')].map((url) => url.slice('http://'.length)) },
      log: { level: 'silent' },
      shutdown: '200ms',
    };
  };
  const openOne = (name: 'triage' | 'billing') =>
    openHoldfast({ dir: join(folder.path, name), config: configOf(name) });
  for (const name of ['triage', 'billing'] as const) {
    const known = await openOne(name);
    keys[name] = known.identity.thumbprint;
    await known.close();
  }
  const triage = await openOne('triage');
  const billing = await openOne('billing');
  triage.onHandoff(contract, {});
  billing.onHandoff(contract, options.handler ?? {});
  const { triage: ofTriage = payments.reader(), billing: ofBilling = payments.reader() } =
    options.readers ?? {};
  const close = async () => {
    await Promise.all([triage.close(), billing.close()]);
    payments.close();
    folder.remove();
  };
  try {
    if (ofTriage) triage.onCase('refund', ofTriage);
    if (ofBilling) billing.onCase('refund', ofBilling);
    await triage.start({ port: ports.triage });
    await billing.start({ port: ports.billing });
  } catch (error) {
    await close();
    throw error;
  }
  return {
    triage,
    billing,
    payments,
    async deliver(message) {
      const response = await fetch(`${billing.url}/a2a`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'a2a-version': '1.0',
          authorization: `Bearer ${await triage.identity.tokenFor(billing.url)}`,
        },
        body: `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":${message}}}`,
      });
      return ((await response.json()) as { result: { task: Task } }).result.task;
    },
    close,
  };
}
