/**
 * Who works on what, and which cases are closed until a person acts. Neither is history: a claim is gone with its holder's lease, or
 * with what it is of.
 * `id` in claims is `root sender handoff_id attempt` of an offer, or the id of a work item.
 */
export const sql = `
CREATE TABLE holders (
  holder TEXT NOT NULL PRIMARY KEY CHECK (holder <> ''),
  until TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE claims (
  tenant TEXT NOT NULL,
  what TEXT NOT NULL CHECK (what IN ('offer', 'work')),
  id TEXT NOT NULL,
  holder TEXT NOT NULL REFERENCES holders (holder) ON DELETE CASCADE,
  PRIMARY KEY (tenant, what, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_by_holder ON claims (holder);

CREATE TRIGGER offers_unclaimed AFTER UPDATE ON offers
WHEN NEW.state IN ('rejected', 'withdrawn', 'expired') OR NEW.receipt IS NOT NULL
BEGIN DELETE FROM claims WHERE tenant = NEW.tenant AND what = 'offer'
  AND id = NEW.root || ' ' || NEW.sender || ' ' || NEW.handoff_id || ' ' || NEW.attempt; END;

CREATE TRIGGER work_items_unclaimed AFTER UPDATE OF state ON work_items WHEN NEW.state <> 'open'
BEGIN DELETE FROM claims WHERE tenant = NEW.tenant AND what = 'work' AND id = NEW.id; END;

CREATE TABLE quarantines (
  tenant TEXT NOT NULL,
  root TEXT NOT NULL,
  case_id TEXT NOT NULL,
  reason TEXT NOT NULL CHECK (reason IN ('epoch_regressed', 'audit_regressed', 'audit_forked', 'case_missing')),
  witnessed TEXT NOT NULL CHECK (json_valid(witnessed)),
  found TEXT NOT NULL CHECK (json_valid(found)),
  at TEXT NOT NULL,
  PRIMARY KEY (tenant, root, case_id)
) STRICT;

CREATE INDEX offers_unfinished ON offers (tenant, sender)
  WHERE receipt IS NULL AND state IN ('intended', 'offered', 'in_doubt', 'accepted');
CREATE INDEX effects_unsettled ON effects (tenant, coalesce(settled_at, limit_at)) WHERE state IN ('started', 'unknown');
`;
