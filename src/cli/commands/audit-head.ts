import type { Command } from 'commander';
import {
  type CaseHead,
  compareHead,
  headsOfExport,
  readHeads,
  verifyExport,
  writeHeads,
} from '../../audit/index.js';
import { HoldfastError, sha256Hex, systemClock } from '../../core/index.js';
import type { Quarantine } from '../../ledger/index.js';
import type { Holdfast } from '../../node/index.js';
import { verifyStatement } from '../../trust/index.js';
import { EXIT } from '../exit-codes.js';
import { readExport, writeNew } from '../files.js';
import { counted, printTable } from '../print.js';
import { type CommonOptions, leaf, type Result, type Session } from '../run.js';

const HEAD_TYPE = 'holdfast-audit-head+jwt';

interface CheckOptions extends CommonOptions {
  key?: string[];
  quarantine?: boolean;
}

/** A file of heads: its first line signs the digest of the others. */
export function addAuditHead(commands: Command, session: Session): void {
  leaf(
    commands,
    'head',
    "write where each case's chain ends now, signed by this agent, to be kept elsewhere",
    ['audit head --out heads.jsonl --dir triage'],
  )
    .option('--out <file>', 'write to this new file instead of stdout')
    .action((options: CommonOptions & { out?: string }) =>
      session.withAgent(options, async (holdfast) => {
        const heads = await headsOf(holdfast);
        const { lines, digest } = writeHeads(heads);
        const claims = {
          iss: holdfast.url,
          tenant: holdfast.config.tenant,
          incarnation: await holdfast.ledger.incarnation(),
          cases: heads.length,
          digest,
          iat: Math.floor(systemClock.now().getTime() / 1000),
        };
        const head = await holdfast.identity.sign(HEAD_TYPE, claims);
        const text = `${JSON.stringify({ head })}\n${lines}`;
        if (options.out === undefined) return { json: { head, heads }, text: text.trimEnd() };
        writeNew(options.out, text);
        return {
          json: { file: options.out, ...claims },
          text: `Wrote the heads of ${counted(heads.length, 'case')} to ${options.out}.`,
        };
      }),
    );

  leaf(
    commands,
    'check-head <file>',
    'compare the ledger with heads, or an export, that were kept elsewhere',
    ['audit check-head heads.jsonl --dir triage', 'audit check-head audit.jsonl --quarantine --dir triage'],
  )
    .option('--key <thumbprint...>', "keys that may have signed it besides this agent's own")
    .option('--quarantine', 'close each case of which the ledger is older, until a person acts')
    .action((file: string, options: CheckOptions) =>
      session.withAgent(options, (holdfast) => checkHead(holdfast, file, options)),
    );
}

async function headsOf({ ledger, config }: Holdfast): Promise<CaseHead[]> {
  const heads: CaseHead[] = [];
  for (const ref of await ledger.listAuditedCases(config.tenant)) {
    const head = await ledger.auditHead(ref);
    if (head !== null) heads.push({ ...ref, ...head });
  }
  return heads;
}

async function checkHead(holdfast: Holdfast, file: string, options: CheckOptions): Promise<Result> {
  const { ledger, identity } = holdfast;
  const keys = [
    identity.thumbprint,
    ...identity.retired.map((one) => one.thumbprint),
    ...(options.key ?? []),
  ];
  const kept = await readKept(readExport(file), file, keys);
  const behind: (Omit<Quarantine, 'at'> & { readonly verdict: 'regressed' | 'forked' })[] = [];
  for (const head of kept.heads) {
    const { tenant, root, caseId, seq, hash } = head;
    const ref = { tenant, root, caseId };
    const [now, hashThere] = await Promise.all([ledger.auditHead(ref), ledger.auditHash(ref, seq)]);
    const reason = compareHead(head, { head: now, hashThere });
    if (reason === null) continue;
    const row = { ref, reason, witnessed: { seq, hash }, found: { ...now } };
    behind.push({ ...row, verdict: reason === 'audit_forked' ? 'forked' : 'regressed' });
    if (options.quarantine) await holdfast.quarantine(row);
  }
  const verdict = behind.some((one) => one.verdict === 'forked')
    ? 'forked'
    : behind.length > 0
      ? 'regressed'
      : 'ok';
  const counts = `${counted(kept.heads.length, 'case')} (${kept.signed ? 'signed' : 'an export, unsigned'})`;
  return {
    json: {
      verdict,
      signed: kept.signed,
      cases: kept.heads.length,
      quarantined: options.quarantine === true,
      behind,
    },
    text:
      verdict === 'ok'
        ? `The ledger still holds all that was kept of ${counts}.`
        : [
            `Of ${counts} the ledger has lost something of ${behind.length}:`,
            printTable(
              ['CASE', 'WHAT', 'KEPT', 'FOUND', 'ROOT'],
              behind.map(({ ref, reason, witnessed, found }) => [
                ref.caseId,
                reason,
                `entry ${witnessed.seq}`,
                found.seq === undefined ? 'nothing' : `entry ${found.seq}`,
                ref.root,
              ]),
            ),
            options.quarantine
              ? 'They are quarantined.'
              : 'With --quarantine they are closed to every write.',
          ].join('\n'),
    exit: { ok: EXIT.ok, regressed: EXIT.regressed, forked: EXIT.auditBroken }[verdict],
  };
}

/** @throws audit_broken where it is not what was kept */
async function readKept(
  text: string,
  file: string,
  keys: readonly string[],
): Promise<{ readonly heads: readonly CaseHead[]; readonly signed: boolean }> {
  const end = text.indexOf('\n') + 1;
  const jws = signatureIn(text.slice(0, end));
  if (jws === null) {
    if (!verifyExport(text).ok) throw broken(`${file} is neither a signed head nor an export that verifies.`);
    return { heads: headsOfExport(text), signed: false };
  }
  const lines = text.slice(end);
  const claims = await verifyStatement(jws, HEAD_TYPE, keys);
  const heads = readHeads(lines);
  if (claims === null || heads === null || claims.digest !== sha256Hex(lines)) {
    throw broken(`${file} was changed, or no key of this agent signed it; --key names the key of another.`);
  }
  return { heads, signed: true };
}

function signatureIn(line: string): string | null {
  try {
    const { head } = JSON.parse(line);
    return typeof head === 'string' ? head : null;
  } catch {
    return null;
  }
}

function broken(message: string): HoldfastError {
  return new HoldfastError('audit_broken', message);
}
