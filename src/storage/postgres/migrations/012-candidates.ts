const TEXT = 'TEXT COLLATE "C"';

const PLAN = [
  ...['tenant', 'root', 'case_id', 'sender', 'epoch', 'attempt', 'candidates', 'escalate_to'],
  ...['accept_within_ms', 'state', 'reason', 'at'],
];
const SENT_TASK = [
  ...['tenant', 'root', 'case_id', 'sender', 'handoff_id', 'attempt', 'peer', 'task_id', 'state'],
  ...['question_n', 'question', 'answer_n', 'answer', 'at'],
];

const TYPES: Readonly<Record<string, string>> = {
  epoch: 'bigint',
  attempt: 'int',
  accept_within_ms: 'bigint',
  question_n: 'int',
  answer_n: 'int',
};

const rows = (list: string, columns: readonly string[]) =>
  `jsonb_to_recordset(batch -> '${list}') AS r(n int, ${columns
    .map((column) => `${column} ${TYPES[column] ?? TEXT}`)
    .join(', ')})`;

/** Inserts each row of a list, or puts it in the place of the one with this key. One row of a key for each command of the batch. */
function put(list: string, table: string, key: readonly string[], columns: readonly string[]): string {
  const others = columns.filter((column) => !key.includes(column));
  return `
  IF batch ? '${list}' THEN
    FOR r IN SELECT * FROM ${rows(list, columns)} WHERE n = ANY (go) ORDER BY n LOOP
      INSERT INTO holdfast.${table} (${columns.join(', ')}) VALUES (${columns.map((column) => `r.${column}`).join(', ')})
        ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${others.map((column) => `${column} = excluded.${column}`).join(', ')};
    END LOOP;
  END IF;`;
}

/**
 * Whom a case goes to next, one list for each case, and the tasks at receivers of offers that were not decided at once, with what was
 * asked there and answered.
 */
export const sql = `
CREATE TABLE holdfast.candidate_plans (
  tenant ${TEXT} NOT NULL,
  root ${TEXT} NOT NULL,
  case_id ${TEXT} NOT NULL,
  sender ${TEXT} NOT NULL,
  epoch BIGINT NOT NULL CHECK (epoch >= 1),
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  candidates ${TEXT} NOT NULL,
  escalate_to ${TEXT},
  accept_within_ms BIGINT NOT NULL CHECK (accept_within_ms > 0),
  state ${TEXT} NOT NULL CHECK (state IN ('active', 'exhausted', 'ended')),
  reason ${TEXT},
  at ${TEXT} NOT NULL,
  ord BIGINT GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (tenant, root, case_id),
  FOREIGN KEY (tenant, root, case_id) REFERENCES holdfast.cases (tenant, root, case_id)
);
CREATE INDEX candidate_plans_active ON holdfast.candidate_plans (sender, at) WHERE state = 'active';
CREATE INDEX candidate_plans_exhausted ON holdfast.candidate_plans (at) WHERE state = 'exhausted';

CREATE TABLE holdfast.sent_tasks (
  tenant ${TEXT} NOT NULL,
  root ${TEXT} NOT NULL,
  case_id ${TEXT} NOT NULL,
  sender ${TEXT} NOT NULL,
  handoff_id ${TEXT} NOT NULL,
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  peer ${TEXT} NOT NULL,
  task_id ${TEXT} NOT NULL,
  state ${TEXT} NOT NULL,
  question_n INTEGER CHECK (question_n >= 1),
  question ${TEXT},
  answer_n INTEGER CHECK (answer_n <= question_n),
  answer ${TEXT},
  at ${TEXT} NOT NULL,
  ord BIGINT GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (tenant, root, sender, handoff_id, attempt),
  CHECK ((question_n IS NULL) = (question IS NULL) AND (answer_n IS NULL) = (answer IS NULL))
);
CREATE INDEX sent_tasks_of_case ON holdfast.sent_tasks (root, case_id);
CREATE INDEX sent_tasks_by_task ON holdfast.sent_tasks (task_id);
CREATE INDEX sent_tasks_asked ON holdfast.sent_tasks (at) WHERE state = 'TASK_STATE_INPUT_REQUIRED';

-- What was there is one part of it now; the lists of this page are carried out behind it, in the same statement of the caller.
ALTER FUNCTION holdfast.apply(int[], jsonb, timestamptz) RENAME TO apply_before_candidates;

CREATE FUNCTION holdfast.apply(go int[], batch jsonb, clock timestamptz) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  r record;
BEGIN
  PERFORM holdfast.apply_before_candidates(go, batch, clock);
${put('set_plan', 'candidate_plans', ['tenant', 'root', 'case_id'], PLAN)}
${put('set_sent_task', 'sent_tasks', ['tenant', 'root', 'sender', 'handoff_id', 'attempt'], SENT_TASK)}
END $$;
`;
