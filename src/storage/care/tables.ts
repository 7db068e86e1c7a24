/** One table of the ledger as every engine has it; an engine may have columns of its own besides. */
export interface LedgerTable {
  readonly name: string;
  readonly columns: readonly string[];
}

const REF = ['tenant', 'root', 'case_id'] as const;
const ATTEMPT = ['sender', 'handoff_id', 'attempt'] as const;

/** What is kept of a ledger, each table behind those that it refers to. Not kept: who works on what at the moment, the `holder` of a row. */
export const LEDGER_TABLES: readonly LedgerTable[] = [
  { name: 'kinds', columns: ['tenant', 'kind', 'definition'] },
  {
    name: 'cases',
    columns: [
      ...[...REF, 'kind', 'status', 'owner', 'epoch', 'opened_by', 'opened_at', 'closed_at', 'contract'],
      ...['constraints', 'hops', 'tasks_left'],
    ],
  },
  {
    name: 'offers',
    columns: [
      ...[...REF, ...ATTEMPT, 'kind', 'to_agent', 'contract', 'skill', 'epoch', 'digest', 'message', 'state'],
      ...[
        'code',
        'accept_by',
        'intended_at',
        'intended_seq',
        'closed_at',
        'withheld',
        'receipt',
        'receipt_key',
      ],
    ],
  },
  {
    name: 'decisions',
    columns: [
      ...[...REF, ...ATTEMPT, 'verdict', 'code', 'digest', 'answer', 'task_id', 'epoch_before'],
      ...['epoch_after', 'decided_at'],
    ],
  },
  {
    name: 'work_items',
    columns: [
      ...[
        ...REF,
        'id',
        ...ATTEMPT,
        'owner',
        'epoch',
        'contract',
        'state',
        'envelope',
        'result',
        'created_at',
      ],
      'settled_at',
    ],
  },
  { name: 'notes', columns: [...REF, 'id', 'epoch', 'writer', 'text', 'at'] },
  {
    name: 'effects',
    columns: [
      ...[...REF, 'key', 'operation', 'amount', 'currency', 'epoch', 'owner', 'state', 'started_at'],
      ...['started_seq', 'limit_at', 'settled_at', 'outcome'],
    ],
  },
  {
    name: 'transfers',
    columns: [...REF, ...ATTEMPT, 'to_agent', 'old_epoch', 'new_epoch', 'digest', 'receipt', 'receipt_key'],
  },
  {
    name: 'tasks',
    columns: ['tenant', 'id', 'peer', 'context_id', 'state', 'version', 'status_at', 'task', 'handoff_id'],
  },
  {
    name: 'pending',
    columns: [
      ...[...REF, ...ATTEMPT, 'kind', 'to_agent', 'contract', 'digest', 'message', 'token_id', 'task_id'],
      ...['accept_by', 'state', 'clarifications', 'received_at', 'rev'],
    ],
  },
  {
    name: 'push_configs',
    columns: [
      ...['tenant', 'push_id', 'task_id', 'config_id', 'agent', 'url', 'origin', 'token', 'scheme'],
      ...['credentials', 'state', 'due_at', 'rev', 'created_at'],
    ],
  },
  {
    name: 'notifications',
    columns: [...['tenant', 'push_id', 'seq', 'body', 'state', 'at', 'since', 'tries', 'tried_at', 'reason']],
  },
  {
    name: 'watches',
    columns: [
      ...['tenant', 'watch_id', 'agent', 'peer', 'task_id', 'token_hash', 'secret', 'created_at', 'until'],
    ],
  },
  { name: 'heard', columns: ['watch_id', 'notification_id', 'at'] },
  {
    name: 'candidate_plans',
    columns: [
      ...[...REF, 'sender', 'epoch', 'attempt', 'candidates', 'escalate_to', 'accept_within_ms', 'state'],
      ...['reason', 'at'],
    ],
  },
  {
    name: 'sent_tasks',
    columns: [
      ...[...REF, ...ATTEMPT, 'peer', 'task_id', 'state', 'question_n', 'question', 'answer_n', 'answer'],
      'at',
    ],
  },
  { name: 'incarnations', columns: ['agent', 'incarnation', 'since', 'holders', 'rev'] },
  {
    name: 'awaited_peers',
    columns: ['agent', 'peer', 'incarnation', 'contracts', 'state', 'since', 'by', 'reason'],
  },
  { name: 'peer_incarnations', columns: ['tenant', 'agent', 'peer', 'incarnation', 'since', 'open', 'rev'] },
  { name: 'quarantines', columns: [...REF, 'reason', 'witnessed', 'found', 'at'] },
  { name: 'audit', columns: [...REF, 'seq', 'entry', 'prev_hash', 'hash'] },
];
