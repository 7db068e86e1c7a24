/**
 * Lives of agents on the ledger, the peers that have to answer each, and what peers have said of theirs. A case of a separate kind goes on
 * at the very epoch that was witnessed: its quarantine may end one below, for the step that leads there.
 */
export const sql = `
CREATE TABLE incarnations (
  agent TEXT NOT NULL PRIMARY KEY,
  incarnation TEXT NOT NULL CHECK (incarnation <> ''),
  since TEXT NOT NULL,
  holders TEXT NOT NULL CHECK (json_valid(holders)),
  rev INTEGER NOT NULL CHECK (rev >= 1)
) STRICT;

CREATE TRIGGER incarnations_kept BEFORE DELETE ON incarnations
BEGIN SELECT RAISE(ABORT, 'the incarnation of an agent is kept'); END;

CREATE TRIGGER incarnations_forward BEFORE UPDATE ON incarnations
WHEN NEW.agent <> OLD.agent OR NEW.rev <> OLD.rev + 1 OR (NEW.incarnation <> OLD.incarnation AND NEW.since <= OLD.since)
BEGIN SELECT RAISE(ABORT, 'an incarnation is followed by a later one'); END;

CREATE TABLE awaited_peers (
  agent TEXT NOT NULL REFERENCES incarnations (agent),
  peer TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  contracts TEXT NOT NULL CHECK (json_valid(contracts)),
  state TEXT NOT NULL CHECK (state IN ('waiting', 'answered', 'waived')),
  since TEXT NOT NULL,
  by TEXT,
  reason TEXT,
  PRIMARY KEY (agent, peer),
  CHECK ((by IS NULL) = (reason IS NULL)),
  CHECK (state <> 'waived' OR by IS NOT NULL)
) STRICT;

CREATE TABLE peer_incarnations (
  tenant TEXT NOT NULL,
  agent TEXT NOT NULL,
  peer TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  since TEXT NOT NULL,
  open TEXT NOT NULL CHECK (json_valid(open)),
  rev INTEGER NOT NULL CHECK (rev >= 0),
  PRIMARY KEY (tenant, agent, peer)
) STRICT;

CREATE TRIGGER peer_incarnations_forward BEFORE UPDATE ON peer_incarnations
WHEN NEW.rev <> OLD.rev + 1 OR (NEW.incarnation <> OLD.incarnation AND NEW.since <= OLD.since)
BEGIN SELECT RAISE(ABORT, 'an incarnation is followed by a later one'); END;

CREATE INDEX transfers_by_sender ON transfers (sender);
CREATE INDEX transfers_by_receiver ON transfers (to_agent);

DROP TRIGGER quarantines_kept;
CREATE TRIGGER quarantines_kept BEFORE DELETE ON quarantines
WHEN EXISTS (SELECT 1 FROM cases c WHERE c.tenant = OLD.tenant AND c.root = OLD.root AND c.case_id = OLD.case_id
  AND c.epoch < json_extract(OLD.witnessed, '$.epoch') - coalesce((SELECT json_extract(k.definition, '$.mode') = 'separate'
    FROM kinds k WHERE k.tenant = c.tenant AND k.kind = c.kind), 0))
BEGIN SELECT RAISE(ABORT, 'a quarantine stays until the epoch has come up to the one witnessed'); END;
`;
