import type { ErrorCode, HoldfastError } from '../core/index.js';

/** What a person can do next, where the error's own sentence does not say it. */
const HINTS: Partial<Record<ErrorCode, string>> = {
  epoch_stale: '`holdfast case show` says who owns the case now, and at which epoch.',
  epoch_ahead: '`holdfast case show` says at which epoch the case is.',
  not_owner: '`holdfast case show` says who owns the case; only the owner may write.',
  case_unknown: '`holdfast case list` shows the cases in this ledger; `holdfast case open` opens one.',
  case_busy: '`holdfast case show` lists what is open: settle or void it first.',
  case_exists: '`holdfast case show` shows it.',
  kind_unknown: '`holdfast kind list` shows the kinds; new ones are written under kinds in holdfast.yaml.',
  offer_open: '`holdfast handoff list --open` shows it: resend or void it first.',
  offer_unknown: '`holdfast handoff list` shows the offers.',
  effect_in_flight: '`holdfast effect list` shows it: settle it first.',
  effect_duplicate: '`holdfast effect list` shows it; one key is one effect, whoever starts it.',
  effect_unknown: '`holdfast effect list` shows the effects of a case.',
  cap_exceeded: '`holdfast kind list` shows the caps; all effects of the case count towards them.',
  operation_not_permitted: '`holdfast kind list` shows who may start what.',
  work_unknown: '`holdfast work list` shows the work items.',
  contract_missing: 'Name it under contracts in holdfast.yaml.',
  peer_unknown: 'Add it with `holdfast peer add`.',
  peer_unreachable:
    'Nothing was sent. See that it runs (`holdfast serve`) and that network in holdfast.yaml lets this agent reach it.',
  peer_key_mismatch: 'Nothing was sent. `holdfast identity` on the other side prints the right thumbprint.',
  personal_data: 'Take it out of these fields; details belong in the redacted evidence.',
  evidence_expires_early: 'Lengthen evidence.url_ttl or shorten --accept-within.',
  case_quarantined:
    '`holdfast attention show` says what was witnessed of it, what was found, and what can be done.',
  schema_newer: 'Install the newer version here too; the file was not touched.',
  peers_unanswered: '`holdfast peer answers` shows which: see that they run, and try the same again.',
  busy: 'Try again.',
};

/** Where the name of the ledger comes from. */
const NAMED_BY = 'It is named by --db, else by HOLDFAST_DB, else by ledger in holdfast.yaml.';

/** What can be done next about this error; `null` where its message says it. */
export function hintOf({ code, fields, data }: HoldfastError): string | null {
  if (code === 'ledger_unavailable') return ledgerHint(data.ledger);
  // Of a file, the message itself says what can be done.
  if (code === 'personal_data' && fields.length === 0) return null;
  if (code === 'personal_data' && fields.every(({ path }) => path === 'reason')) {
    return 'Say why without it.';
  }
  if (code === 'epoch_stale' && data.owner !== undefined) return null;
  return HINTS[code] ?? null;
}

function ledgerHint(ledger: unknown): string {
  return typeof ledger === 'string' && /^postgres(ql)?:/i.test(ledger)
    ? `See that the server runs, and that host, port, database, user, password and rights are right. ${NAMED_BY}`
    : `See that the ledger exists and can be written. ${NAMED_BY}`;
}
