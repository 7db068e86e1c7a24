import { actsFor, formatMoney, HoldfastError } from '../core/index.js';
import type { AttentionItem, AuditEntry, CaseAttention, CaseRow, KindDefinition } from '../ledger/index.js';
import type { Holdfast } from '../node/index.js';
import {
  describeCandidate,
  explainCandidates,
  explainDecision,
  explainQuestion,
} from './attention-handoffs.js';
import type { Explained, Of } from './attention-item.js';
import { ambiguous } from './cases.js';
import { explainDoubt } from './doubt-report.js';
import { printFields, printTable } from './print.js';
import { explainQuarantine, placeOf } from './quarantine-report.js';
import type { Result } from './run.js';

/** One line for each thing that waits. */
export function listItems(items: readonly AttentionItem[]): Result {
  const text =
    items.length === 0
      ? 'Nothing waits for a person.'
      : printTable(['CASE', 'WHAT', 'SINCE', 'PARTICULARS', 'ROOT'], items.map(rowOf));
  return { json: { items }, text };
}

/** The one thing that a person means. @throws not_found, usage where several wait */
export async function findItem(
  { ledger, config, caseRef }: Holdfast,
  caseId: string,
  { root, key, what: named }: { root?: string; key?: string; what?: string },
): Promise<CaseAttention> {
  const wanted = root === undefined ? undefined : caseRef(caseId, root).root;
  const ofCases = (await ledger.listAttention(config.tenant)).filter((item) => item.ref !== null);
  const found = ofCases.filter(
    ({ ref, what, data }) =>
      ref.caseId === caseId &&
      (wanted === undefined || ref.root === wanted) &&
      (named === undefined || what === named.replaceAll('-', '_')) &&
      (key === undefined || ('key' in data && data.key === key)),
  );
  const [only] = found;
  const about = key === undefined ? caseId : `${key} on ${caseId}`;
  if (!only) throw new HoldfastError('not_found', `Nothing about ${about} waits for a person.`);
  if (found.length === 1) return only;
  const refs = [...new Map(found.map(({ ref }) => [ref.root, ref])).values()];
  if (refs.length > 1) throw ambiguous(caseId, refs);
  const sorts = [...new Set(found.map((item) => nameOf(item)))];
  if (sorts.length > 1) {
    throw new HoldfastError(
      'usage',
      `Several things about ${caseId} wait. Say which with --what: ${sorts.join(', ')}.`,
    );
  }
  const keys = found.flatMap(({ data }) => ('key' in data ? [data.key] : []));
  throw new HoldfastError(
    'usage',
    `Several effects of ${caseId} are unknown. Say which with --key: ${keys.join(', ')}.`,
  );
}

/** What happened, what is safe to do about it, and which commands settle it. */
export async function explainItem({ ledger, url }: Holdfast, item: CaseAttention): Promise<Result> {
  const { ref } = item;
  const [row, audit, kinds] = await Promise.all([
    ledger.getCase(ref),
    ledger.readAudit(ref),
    ledger.listKinds(ref.tenant),
  ]);
  const explained = explain(item, row, audit, kinds, url);
  const { fields, history, safe, commands } = explained;
  const text = [
    printFields([
      ['case', item.ref.caseId],
      ['root', item.ref.root],
      ['what', item.what.replaceAll('_', ' ')],
      ['since', item.since],
      ...fields,
      ['owner', row?.owner],
      ['epoch', row?.epoch],
    ]),
    history.length === 0
      ? ''
      : `What happened\n${printTable(['AT', 'WHAT', 'BY', 'STATE'], history.map(entryRow))}`,
    `What is safe to do\n${safe.map((line, index) => `${index + 1}. ${line}`).join('\n')}`,
    commands.length === 0 ? '' : `Commands\n${commands.map((line) => `  ${line}`).join('\n')}`,
  ];
  return {
    json: { item, case: row, history, safe, commands },
    text: text.filter((block) => block !== '').join('\n\n'),
  };
}

function explain(
  item: CaseAttention,
  row: CaseRow | null,
  audit: readonly AuditEntry[],
  kinds: readonly KindDefinition[],
  self: string,
): Explained {
  const { ref } = item;
  const at = ref.root === self ? '' : ` --root ${ref.root}`;
  switch (item.what) {
    case 'effect_unknown':
      return explainEffect(item, row, audit, self);
    case 'case_quarantined':
      return explainQuarantine(item, row, kinds, self);
    case 'question_open':
      return { ...explainQuestion(item, at), history: [] };
    case 'decision_waiting':
      return { ...explainDecision(item, self), history: [] };
    case 'candidates_exhausted':
      return { ...explainCandidates(item, row, at), history: [] };
    case 'offer_in_doubt':
    case 'risk_double_owner':
      return explainDoubt(item, row, audit, self);
  }
}

function explainEffect(
  { ref, data }: Of<'effect_unknown'>,
  row: CaseRow | null,
  audit: readonly AuditEntry[],
  self: string,
): Explained {
  const { key, operation, amount, startedAt } = data;
  const what = amount === null ? operation : `${operation} of ${formatMoney(amount)}`;
  const at = [ref.caseId, ...(ref.root === self ? [] : ['--root', ref.root])].join(' ');
  const settle = `holdfast attention resolve ${at} --key ${key} --person ID`;
  const mine = row !== null && actsFor(row.owner) === self;
  return {
    fields: [
      ['key', key],
      ['operation', operation],
      ['amount', amount === null ? null : formatMoney(amount)],
      ['started', `${startedAt} by ${data.owner}, at epoch ${data.epoch}`],
    ],
    history: audit.filter((entry) => entry.data?.key === key),
    safe: [
      `Look up in the business system, under the idempotency key ${key}, whether the ${what} happened. Whoever started it does not know.`,
      'If it happened, settle it as done, with the reference under which the system keeps it.',
      'Only where it is proved that it did not happen and never will, settle it as failed: the key may then start again.',
      'As long as you do not know, leave it. Nobody can start this key meanwhile, its amount counts towards the cap, and the case cannot be closed. Do not do it by hand, or under another key.',
    ],
    commands: mine
      ? [
          `${settle} --state done --outcome REFERENCE --reason "TEXT"`,
          `${settle} --state failed --reason "TEXT"`,
        ]
      : takeFirst(row, at, self, settle),
  };
}

/** It is the owner who settles. */
function takeFirst(row: CaseRow | null, at: string, self: string, settle: string): string[] {
  if (row === null) return [];
  const first =
    row.ref.root === self
      ? `holdfast case take ${at} --person ID --epoch ${row.epoch} --reason "TEXT"`
      : `at the agent ${actsFor(row.owner)}, which can act for the owner:`;
  return [first, `${settle} --state done|failed --reason "TEXT"`];
}

/** As `--what` takes it. */
function nameOf({ what }: AttentionItem): string {
  return what.replaceAll('_', '-');
}

function entryRow({ at, type, actor, data, rule }: AuditEntry): string[] {
  const state = data?.state;
  return [at, type, actor, typeof state === 'string' ? state : type === 'write_refused' ? (rule ?? '') : ''];
}

function rowOf(item: AttentionItem): string[] {
  const { since } = item;
  if (item.what === 'peer_unanswered') {
    const { agent, peer, incarnation } = item.data;
    const particulars = `${peer} has not answered ${incarnation}: see that it runs; if it is gone for good, holdfast peer waive`;
    return ['-', 'peer unanswered', since, particulars, agent];
  }
  const { ref } = item;
  if (item.what === 'case_quarantined') {
    const { reason, witnessed, found } = item.data;
    const particulars = `${reason}: witnessed ${placeOf(witnessed)}, found ${placeOf(found)}`;
    return [ref.caseId, 'case quarantined', since, particulars, ref.root];
  }
  if (item.what === 'question_open') {
    const { handoffId, attempt, peer, question } = item.data;
    const particulars = `${handoffId}, attempt ${attempt}: ${peer} asks: ${question}`;
    return [ref.caseId, 'question open', since, particulars, ref.root];
  }
  if (item.what === 'candidates_exhausted') {
    const particulars = `${item.data.reason}: ${item.data.candidates.map(describeCandidate).join('; ')}`;
    return [ref.caseId, 'candidates exhausted', since, particulars, ref.root];
  }
  if (item.what === 'decision_waiting') {
    const { handoffId, attempt, sender, toAgent, acceptBy } = item.data;
    const particulars = `${handoffId}, attempt ${attempt}, from ${sender} to ${toAgent}, by ${acceptBy}`;
    return [ref.caseId, 'decision waiting', since, particulars, ref.root];
  }
  if (item.what !== 'effect_unknown') {
    const { handoffId, attempt, toAgent } = item.data;
    const particulars = `${handoffId}, attempt ${attempt}, to ${toAgent}`;
    return [ref.caseId, item.what.replaceAll('_', ' '), since, particulars, ref.root];
  }
  const { key, operation, amount } = item.data;
  const particulars = [operation, key, amount === null ? '' : formatMoney(amount)].filter(Boolean).join(', ');
  return [ref.caseId, 'effect unknown', since, particulars, ref.root];
}
