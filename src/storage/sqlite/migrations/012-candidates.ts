/**
 * Whom a case goes to next, one list for each case, and the tasks at receivers of offers that were not decided at once, with what was
 * asked there and answered.
 */
export const sql = `
CREATE TABLE candidate_plans (
  tenant TEXT NOT NULL,
  root TEXT NOT NULL,
  case_id TEXT NOT NULL,
  sender TEXT NOT NULL,
  epoch INTEGER NOT NULL CHECK (epoch >= 1),
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  candidates TEXT NOT NULL CHECK (json_valid(candidates)),
  escalate_to TEXT,
  accept_within_ms INTEGER NOT NULL CHECK (accept_within_ms > 0),
  state TEXT NOT NULL CHECK (state IN ('active', 'exhausted', 'ended')),
  reason TEXT,
  at TEXT NOT NULL,
  PRIMARY KEY (tenant, root, case_id),
  FOREIGN KEY (tenant, root, case_id) REFERENCES cases (tenant, root, case_id)
) STRICT;
CREATE INDEX candidate_plans_active ON candidate_plans (tenant, sender, at) WHERE state = 'active';
CREATE INDEX candidate_plans_exhausted ON candidate_plans (tenant, at) WHERE state = 'exhausted';

CREATE TABLE sent_tasks (
  tenant TEXT NOT NULL,
  root TEXT NOT NULL,
  case_id TEXT NOT NULL,
  sender TEXT NOT NULL,
  handoff_id TEXT NOT NULL,
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  peer TEXT NOT NULL,
  task_id TEXT NOT NULL,
  state TEXT NOT NULL,
  question_n INTEGER CHECK (question_n >= 1),
  question TEXT,
  answer_n INTEGER CHECK (answer_n <= question_n),
  answer TEXT,
  at TEXT NOT NULL,
  PRIMARY KEY (tenant, root, sender, handoff_id, attempt),
  CHECK ((question_n IS NULL) = (question IS NULL) AND (answer_n IS NULL) = (answer IS NULL))
) STRICT;
CREATE INDEX sent_tasks_of_case ON sent_tasks (tenant, root, case_id);
CREATE INDEX sent_tasks_by_task ON sent_tasks (tenant, task_id);
CREATE INDEX sent_tasks_asked ON sent_tasks (tenant, at) WHERE state = 'TASK_STATE_INPUT_REQUIRED';
`;
