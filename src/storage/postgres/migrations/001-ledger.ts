/** Ordered by its bytes whatever the database's locale, as in the other storages. */
const TEXT = 'TEXT COLLATE "C"';

/** Place in the order in which the rows of a table were made. */
const ORD = 'ord BIGINT GENERATED ALWAYS AS IDENTITY';

const differ = (...columns: string[]) =>
  columns.map((column) => `NEW.${column} IS DISTINCT FROM OLD.${column}`).join(' OR ');

/**
 * Refuses what `when` tells of, where a look at the row itself is enough. The condition is inside the function, which keeps it compiled;
 * a trigger's own is read anew by every statement.
 */
const refuse = (name: string, event: string, table: string, message: string, when = 'true') => `
CREATE FUNCTION holdfast.${name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF ${when} THEN
    RAISE EXCEPTION '${message}' USING ERRCODE = 'HL001';
  END IF;
  RETURN coalesce(NEW, OLD);
END $$;
CREATE TRIGGER ${name} BEFORE ${event} ON holdfast.${table} FOR EACH ROW EXECUTE FUNCTION holdfast.${name}();`;

/** Rows of history stay, and so does the table. */
const keep = (table: string, message: string, when = 'true') => `
${refuse(`${table}_kept`, 'DELETE', table, message, when)}
CREATE TRIGGER ${table}_not_emptied BEFORE TRUNCATE ON holdfast.${table}
  EXECUTE FUNCTION holdfast.refuse('${message}');`;

const TERMINAL = `OLD.state IN
  ('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED')`;

/**
 * The invariants hold here too, so that a fault in our own code, or a hand with a SQL shell, meets them:
 * H1 and H2 by `cases_move`, H4 by the keys of decisions and work items, H5 by the key of effects, H8 by `audit_next`.
 * A plan that was made while a table was empty takes any index in which a column of its condition stands. So a column of a key stands in
 * no other index but those of open rows, which only who asks for open rows can use, and inside expressions.
 * `audit_heads` is the version of everything the ledger holds on a case: whoever changes a case holds its head.
 */
export const sql = `
CREATE TABLE holdfast.meta (
  name ${TEXT} PRIMARY KEY,
  value ${TEXT} NOT NULL
);

CREATE TABLE holdfast.kinds (
  tenant ${TEXT} NOT NULL,
  kind ${TEXT} NOT NULL,
  definition ${TEXT} NOT NULL CHECK (definition::json IS NOT NULL),
  revision BIGINT NOT NULL CHECK (revision >= 1),
  PRIMARY KEY (tenant, kind)
);

CREATE TABLE holdfast.cases (
  tenant ${TEXT} NOT NULL CHECK (tenant <> ''),
  root ${TEXT} NOT NULL CHECK (root <> ''),
  case_id ${TEXT} NOT NULL CHECK (case_id <> ''),
  kind ${TEXT} NOT NULL,
  status ${TEXT} NOT NULL CHECK (status IN ('open', 'closed')),
  owner ${TEXT} NOT NULL CHECK (owner <> ''),
  epoch BIGINT NOT NULL CHECK (epoch BETWEEN 1 AND 9007199254740991),
  opened_by ${TEXT} NOT NULL,
  opened_at ${TEXT} NOT NULL,
  closed_at ${TEXT},
  contract ${TEXT},
  constraints ${TEXT} NOT NULL CHECK (constraints::json IS NOT NULL),
  hops ${TEXT} NOT NULL CHECK (hops::json IS NOT NULL),
  tasks_left BIGINT NOT NULL,
  ${ORD},
  PRIMARY KEY (tenant, root, case_id),
  FOREIGN KEY (tenant, kind) REFERENCES holdfast.kinds (tenant, kind),
  CHECK ((status = 'closed') = (closed_at IS NOT NULL))
);
CREATE INDEX cases_by_id ON holdfast.cases ((ARRAY[tenant, case_id]));
CREATE INDEX cases_by_owner ON holdfast.cases (owner, ord);

CREATE TABLE holdfast.offers (
  tenant ${TEXT} NOT NULL,
  root ${TEXT} NOT NULL,
  case_id ${TEXT} NOT NULL,
  sender ${TEXT} NOT NULL,
  handoff_id ${TEXT} NOT NULL,
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  kind ${TEXT} NOT NULL,
  to_agent ${TEXT} NOT NULL CHECK (to_agent <> sender),
  contract ${TEXT} NOT NULL,
  skill ${TEXT} NOT NULL,
  epoch BIGINT NOT NULL CHECK (epoch >= 1),
  digest ${TEXT} NOT NULL,
  message ${TEXT} NOT NULL,
  state ${TEXT} NOT NULL CHECK (state IN
    ('intended', 'offered', 'accepted', 'rejected', 'withdrawn', 'expired', 'in_doubt')),
  code ${TEXT},
  accept_by ${TEXT} NOT NULL,
  intended_at ${TEXT} NOT NULL,
  intended_seq BIGINT NOT NULL,
  closed_at ${TEXT},
  withheld ${TEXT} NOT NULL CHECK (withheld::json IS NOT NULL),
  receipt ${TEXT},
  receipt_key ${TEXT},
  ${ORD},
  PRIMARY KEY (tenant, root, sender, handoff_id, attempt),
  FOREIGN KEY (tenant, root, case_id) REFERENCES holdfast.cases (tenant, root, case_id),
  CHECK ((state IN ('intended', 'offered', 'in_doubt')) = (closed_at IS NULL)),
  CHECK ((state = 'rejected') = (code IS NOT NULL)),
  CHECK (receipt IS NULL OR state = 'accepted'),
  CHECK ((receipt IS NULL) = (receipt_key IS NULL))
);
CREATE INDEX offers_by_case ON holdfast.offers (case_id);
CREATE UNIQUE INDEX offers_one_open ON holdfast.offers (case_id, root, tenant)
  WHERE state IN ('intended', 'offered', 'in_doubt');
CREATE INDEX offers_unfinished ON holdfast.offers (sender, tenant, ord)
  WHERE receipt IS NULL AND state IN ('intended', 'offered', 'in_doubt', 'accepted');

CREATE TABLE holdfast.decisions (
  tenant ${TEXT} NOT NULL,
  root ${TEXT} NOT NULL,
  sender ${TEXT} NOT NULL,
  handoff_id ${TEXT} NOT NULL,
  attempt INTEGER NOT NULL,
  case_id ${TEXT} NOT NULL,
  verdict ${TEXT} NOT NULL CHECK (verdict IN ('accepted', 'rejected', 'tombstone')),
  code ${TEXT},
  digest ${TEXT},
  answer ${TEXT} NOT NULL,
  task_id ${TEXT},
  epoch_before BIGINT,
  epoch_after BIGINT,
  decided_at ${TEXT} NOT NULL,
  ${ORD},
  PRIMARY KEY (tenant, root, sender, handoff_id, attempt),
  CHECK ((verdict = 'accepted') = (code IS NULL)),
  CHECK ((verdict = 'tombstone') = (digest IS NULL)),
  CHECK (verdict <> 'accepted' OR epoch_after = epoch_before + 1)
);
CREATE INDEX decisions_by_case ON holdfast.decisions (case_id);
CREATE UNIQUE INDEX decisions_one_per_epoch ON holdfast.decisions (case_id, root, tenant, epoch_after)
  WHERE verdict = 'accepted';

CREATE TABLE holdfast.work_items (
  tenant ${TEXT} NOT NULL,
  root ${TEXT} NOT NULL,
  case_id ${TEXT} NOT NULL,
  id ${TEXT} NOT NULL,
  sender ${TEXT} NOT NULL,
  handoff_id ${TEXT} NOT NULL,
  attempt INTEGER NOT NULL,
  owner ${TEXT} NOT NULL,
  epoch BIGINT NOT NULL,
  contract ${TEXT} NOT NULL,
  state ${TEXT} NOT NULL CHECK (state IN ('open', 'done', 'failed', 'superseded')),
  envelope ${TEXT} NOT NULL,
  result ${TEXT},
  created_at ${TEXT} NOT NULL,
  settled_at ${TEXT},
  ${ORD},
  PRIMARY KEY (tenant, id),
  FOREIGN KEY (tenant, root, case_id) REFERENCES holdfast.cases (tenant, root, case_id),
  FOREIGN KEY (tenant, root, sender, handoff_id, attempt)
    REFERENCES holdfast.decisions (tenant, root, sender, handoff_id, attempt),
  CHECK ((state = 'open') = (settled_at IS NULL))
);
CREATE UNIQUE INDEX work_items_one_each ON holdfast.work_items
  ((ARRAY[tenant, root, sender, handoff_id, attempt::text COLLATE "C"]));
CREATE INDEX work_items_by_case ON holdfast.work_items (case_id);
CREATE INDEX work_items_by_owner ON holdfast.work_items (owner, state, ord);
CREATE UNIQUE INDEX work_items_one_open ON holdfast.work_items (case_id, root, tenant) WHERE state = 'open';

CREATE TABLE holdfast.notes (
  tenant ${TEXT} NOT NULL,
  root ${TEXT} NOT NULL,
  case_id ${TEXT} NOT NULL,
  id ${TEXT} NOT NULL,
  epoch BIGINT NOT NULL,
  writer ${TEXT} NOT NULL,
  text ${TEXT} NOT NULL,
  at ${TEXT} NOT NULL,
  ${ORD},
  PRIMARY KEY (tenant, root, case_id, id),
  FOREIGN KEY (tenant, root, case_id) REFERENCES holdfast.cases (tenant, root, case_id)
);

CREATE TABLE holdfast.effects (
  tenant ${TEXT} NOT NULL,
  root ${TEXT} NOT NULL,
  case_id ${TEXT} NOT NULL,
  key ${TEXT} NOT NULL,
  operation ${TEXT} NOT NULL,
  amount ${TEXT},
  currency ${TEXT},
  epoch BIGINT NOT NULL,
  owner ${TEXT} NOT NULL,
  state ${TEXT} NOT NULL CHECK (state IN ('started', 'done', 'failed', 'unknown')),
  started_at ${TEXT} NOT NULL,
  started_seq BIGINT NOT NULL,
  limit_at ${TEXT} NOT NULL,
  settled_at ${TEXT},
  outcome ${TEXT},
  ${ORD},
  PRIMARY KEY (tenant, root, case_id, key),
  FOREIGN KEY (tenant, root, case_id) REFERENCES holdfast.cases (tenant, root, case_id),
  CHECK ((amount IS NULL) = (currency IS NULL)),
  CHECK ((state = 'started') = (settled_at IS NULL))
);
CREATE INDEX effects_unsettled ON holdfast.effects ((coalesce(settled_at, limit_at)), tenant)
  WHERE state IN ('started', 'unknown');

CREATE TABLE holdfast.tasks (
  tenant ${TEXT} NOT NULL,
  id ${TEXT} NOT NULL,
  peer ${TEXT} NOT NULL,
  context_id ${TEXT} NOT NULL,
  state ${TEXT} NOT NULL,
  version BIGINT NOT NULL CHECK (version >= 1),
  status_at ${TEXT} NOT NULL,
  task ${TEXT} NOT NULL,
  handoff_id ${TEXT},
  PRIMARY KEY (tenant, id)
);
CREATE INDEX tasks_by_status ON holdfast.tasks (peer, status_at DESC);

CREATE TABLE holdfast.audit (
  tenant ${TEXT} NOT NULL,
  root ${TEXT} NOT NULL,
  case_id ${TEXT} NOT NULL,
  seq BIGINT NOT NULL CHECK (seq >= 1),
  entry ${TEXT} NOT NULL,
  prev_hash ${TEXT} NOT NULL,
  hash ${TEXT} NOT NULL,
  commit_id UUID NOT NULL,
  PRIMARY KEY (tenant, root, case_id, seq)
);

CREATE TABLE holdfast.audit_heads (
  tenant ${TEXT} NOT NULL,
  root ${TEXT} NOT NULL,
  case_id ${TEXT} NOT NULL,
  seq BIGINT NOT NULL CHECK (seq >= 1),
  hash ${TEXT} NOT NULL,
  PRIMARY KEY (tenant, root, case_id)
) WITH (fillfactor = 70);

CREATE TABLE holdfast.holders (
  holder ${TEXT} PRIMARY KEY CHECK (holder <> ''),
  until ${TEXT} NOT NULL
);

CREATE TABLE holdfast.claims (
  tenant ${TEXT} NOT NULL,
  what ${TEXT} NOT NULL CHECK (what IN ('offer', 'work')),
  id ${TEXT} NOT NULL,
  holder ${TEXT} NOT NULL REFERENCES holdfast.holders (holder) ON DELETE CASCADE,
  PRIMARY KEY (tenant, what, id)
);
CREATE INDEX claims_by_holder ON holdfast.claims (holder);

CREATE TABLE holdfast.quarantines (
  tenant ${TEXT} NOT NULL,
  root ${TEXT} NOT NULL,
  case_id ${TEXT} NOT NULL,
  reason ${TEXT} NOT NULL CHECK (reason IN ('epoch_regressed', 'audit_regressed', 'audit_forked', 'case_missing')),
  witnessed ${TEXT} NOT NULL CHECK (witnessed::json IS NOT NULL),
  found ${TEXT} NOT NULL CHECK (found::json IS NOT NULL),
  at ${TEXT} NOT NULL,
  ${ORD},
  PRIMARY KEY (tenant, root, case_id)
);

CREATE FUNCTION holdfast.unclaim_offer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM holdfast.claims c WHERE c.tenant = NEW.tenant AND c.what = 'offer'
    AND c.id = NEW.root || ' ' || NEW.sender || ' ' || NEW.handoff_id || ' ' || NEW.attempt;
  RETURN NULL;
END $$;
CREATE TRIGGER offers_unclaimed AFTER UPDATE ON holdfast.offers FOR EACH ROW
  WHEN (NEW.state IN ('rejected', 'withdrawn', 'expired') OR NEW.receipt IS NOT NULL)
  EXECUTE FUNCTION holdfast.unclaim_offer();

CREATE FUNCTION holdfast.unclaim_work() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM holdfast.claims c WHERE c.tenant = NEW.tenant AND c.what = 'work' AND c.id = NEW.id;
  RETURN NULL;
END $$;
CREATE TRIGGER work_items_unclaimed AFTER UPDATE ON holdfast.work_items FOR EACH ROW
  WHEN (NEW.state <> 'open') EXECUTE FUNCTION holdfast.unclaim_work();

CREATE FUNCTION holdfast.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'HL001';
END $$;
${refuse('cases_identity', 'UPDATE', 'cases', 'a case keeps its identity', differ('tenant', 'root', 'case_id', 'kind', 'opened_by', 'opened_at'))}
${refuse(
  'cases_move',
  'UPDATE',
  'cases',
  'owner and epoch change together, by one',
  `(${differ('epoch', 'owner')}) AND NOT (NEW.epoch = OLD.epoch + 1 AND NEW.owner <> OLD.owner)`,
)}
${refuse('cases_final', 'UPDATE', 'cases', 'a closed case is final', "OLD.status = 'closed'")}

CREATE FUNCTION holdfast.close_case() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM holdfast.offers o WHERE o.tenant = OLD.tenant AND o.root = OLD.root
      AND o.case_id = OLD.case_id AND o.state IN ('intended', 'offered', 'in_doubt'))
    OR EXISTS (SELECT 1 FROM holdfast.work_items w WHERE w.tenant = OLD.tenant AND w.root = OLD.root
      AND w.case_id = OLD.case_id AND w.state = 'open')
    OR EXISTS (SELECT 1 FROM holdfast.effects e WHERE e.tenant = OLD.tenant AND e.root = OLD.root
      AND e.case_id = OLD.case_id AND (e.state || '') IN ('started', 'unknown'))
  THEN
    RAISE EXCEPTION 'a case with something out cannot close' USING ERRCODE = 'HL001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER cases_close BEFORE UPDATE ON holdfast.cases FOR EACH ROW
  WHEN (NEW.status = 'closed') EXECUTE FUNCTION holdfast.close_case();
${keep('cases', 'cases are kept')}

${refuse(
  'offers_bytes',
  'UPDATE',
  'offers',
  'the bytes of an attempt never change',
  differ(
    ...[
      'tenant',
      'root',
      'case_id',
      'sender',
      'handoff_id',
      'attempt',
      'kind',
      'to_agent',
      'contract',
      'skill',
    ],
    ...['epoch', 'digest', 'message', 'accept_by', 'intended_at', 'intended_seq', 'withheld'],
  ),
)}
${refuse(
  'offers_final',
  'UPDATE',
  'offers',
  'a closed offer is final',
  `OLD.state IN ('accepted', 'rejected', 'withdrawn', 'expired')
    AND (${differ('state', 'code', 'closed_at')} OR OLD.receipt IS NOT NULL)`,
)}

CREATE FUNCTION holdfast.close_offer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM holdfast.decisions d WHERE d.tenant = OLD.tenant AND d.root = OLD.root
    AND d.sender = OLD.sender AND d.handoff_id = OLD.handoff_id AND d.attempt = OLD.attempt)
  THEN
    RAISE EXCEPTION 'only a decision closes an offer' USING ERRCODE = 'HL001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER offers_decided BEFORE UPDATE ON holdfast.offers FOR EACH ROW
  WHEN (NEW.state IN ('accepted', 'rejected', 'withdrawn', 'expired')) EXECUTE FUNCTION holdfast.close_offer();
${keep('offers', 'offers are kept')}

${refuse('decisions_final', 'UPDATE', 'decisions', 'decisions are final')}
${keep('decisions', 'decisions are kept')}

${refuse('work_items_final', 'UPDATE', 'work_items', 'a settled work item is final', "OLD.state <> 'open'")}
${refuse(
  'work_items_identity',
  'UPDATE',
  'work_items',
  'a work item keeps its identity',
  differ(
    ...['tenant', 'root', 'case_id', 'id', 'sender', 'handoff_id', 'attempt', 'owner', 'epoch', 'contract'],
    ...['envelope', 'created_at'],
  ),
)}
${keep('work_items', 'work items are kept')}

${refuse('notes_final', 'UPDATE', 'notes', 'notes are final')}
${keep('notes', 'notes are kept')}

${refuse(
  'effects_steps',
  'UPDATE',
  'effects',
  'an effect does not go that way',
  `NEW.key IS DISTINCT FROM OLD.key OR NOT (
    (OLD.state = 'started' AND NEW.state IN ('done', 'failed', 'unknown'))
    OR (OLD.state = 'unknown' AND NEW.state IN ('done', 'failed'))
    OR (OLD.state = 'failed' AND NEW.state = 'started'))`,
)}
${refuse('effects_identity', 'UPDATE', 'effects', 'an effect keeps its case', differ('tenant', 'root', 'case_id'))}
${keep('effects', 'effects are kept')}

${refuse('tasks_final', 'UPDATE', 'tasks', 'a terminal task is final', TERMINAL)}
${refuse('tasks_identity', 'UPDATE', 'tasks', 'a task keeps its identity', differ('tenant', 'id', 'peer', 'handoff_id'))}
${keep('tasks', 'terminal tasks are kept', TERMINAL)}

CREATE FUNCTION holdfast.next_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.seq = 1 AND NEW.prev_hash = '' OR EXISTS (SELECT 1 FROM holdfast.audit a WHERE a.tenant = NEW.tenant
    AND a.root = NEW.root AND a.case_id = NEW.case_id AND a.seq = NEW.seq - 1 AND a.hash = NEW.prev_hash)
  THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'the audit chain goes on without gap or fork' USING ERRCODE = 'HL001';
END $$;
CREATE TRIGGER audit_next BEFORE INSERT ON holdfast.audit FOR EACH ROW EXECUTE FUNCTION holdfast.next_entry();
${refuse('audit_final', 'UPDATE', 'audit', 'the audit is append-only')}
${keep('audit', 'the audit is append-only')}

${refuse(
  'audit_heads_forward',
  'UPDATE',
  'audit_heads',
  'the head of a chain only goes forward',
  `${differ('tenant', 'root', 'case_id')} OR NEW.seq < OLD.seq OR NEW.seq = OLD.seq AND NEW.hash <> OLD.hash`,
)}
${keep('audit_heads', 'the head of a chain is kept')}
`;
