ALTER TABLE "invoices" ADD COLUMN "holdfast_token" TEXT;
CREATE TRIGGER "holdfast_fence_invoices_insert" BEFORE INSERT ON "invoices"
WHEN NOT (EXISTS (SELECT 1 FROM cases AS c WHERE c.tenant = 'acme' AND c.root = 'https://triage.example' AND c.case_id = CAST(NEW."case_id" AS TEXT) AND c.status = 'open' AND c.case_id || ':' || c.epoch || ':' || c.owner = (NEW."holdfast_token")) AND NOT EXISTS (SELECT 1 FROM quarantines AS q WHERE q.tenant = 'acme' AND q.root = 'https://triage.example' AND q.case_id = CAST(NEW."case_id" AS TEXT)))
  OR EXISTS (SELECT 1 FROM "invoices" AS held WHERE held."_rowid_" = NEW."_rowid_" COLLATE "BINARY" AND (held."case_id" IS NOT NEW."case_id"))
BEGIN
  SELECT RAISE(ABORT, 'holdfast: HF001 INSERT on invoices: the statement sets no token of the case in holdfast_token') WHERE (substr((NEW."holdfast_token"), 1, length(CAST(NEW."case_id" AS TEXT)) + 1) = CAST(NEW."case_id" AS TEXT) || ':') IS NOT TRUE;
  SELECT RAISE(ABORT, 'holdfast: HF004 INSERT on invoices: the case is not in this ledger') WHERE NOT EXISTS (SELECT 1 FROM cases AS c WHERE c.tenant = 'acme' AND c.root = 'https://triage.example' AND c.case_id = CAST(NEW."case_id" AS TEXT));
  SELECT RAISE(ABORT, 'holdfast: HF005 INSERT on invoices: the case is quarantined') WHERE EXISTS (SELECT 1 FROM quarantines AS q WHERE q.tenant = 'acme' AND q.root = 'https://triage.example' AND q.case_id = CAST(NEW."case_id" AS TEXT));
  SELECT RAISE(ABORT, 'holdfast: HF007 INSERT on invoices: the case has not come to this epoch') WHERE EXISTS (SELECT 1 FROM cases AS c WHERE c.tenant = 'acme' AND c.root = 'https://triage.example' AND c.case_id = CAST(NEW."case_id" AS TEXT) AND CAST(substr((NEW."holdfast_token"), length(CAST(NEW."case_id" AS TEXT)) + 2) AS INTEGER) > c.epoch);
  SELECT RAISE(ABORT, 'holdfast: HF002 INSERT on invoices: the case has a newer epoch') WHERE EXISTS (SELECT 1 FROM cases AS c WHERE c.tenant = 'acme' AND c.root = 'https://triage.example' AND c.case_id = CAST(NEW."case_id" AS TEXT) AND CAST(substr((NEW."holdfast_token"), length(CAST(NEW."case_id" AS TEXT)) + 2) AS INTEGER) < c.epoch);
  SELECT RAISE(ABORT, 'holdfast: HF003 INSERT on invoices: the case has another owner') WHERE NOT EXISTS (SELECT 1 FROM cases AS c WHERE c.tenant = 'acme' AND c.root = 'https://triage.example' AND c.case_id = CAST(NEW."case_id" AS TEXT) AND c.case_id || ':' || c.epoch || ':' || c.owner = (NEW."holdfast_token"));
  SELECT RAISE(ABORT, 'holdfast: HF006 INSERT on invoices: the case is closed') WHERE EXISTS (SELECT 1 FROM cases AS c WHERE c.tenant = 'acme' AND c.root = 'https://triage.example' AND c.case_id = CAST(NEW."case_id" AS TEXT) AND c.status <> 'open');
  SELECT RAISE(ABORT, 'holdfast: HF008 INSERT on invoices: the row has a key of a row of another case') WHERE EXISTS (SELECT 1 FROM "invoices" AS held WHERE held."_rowid_" = NEW."_rowid_" COLLATE "BINARY" AND (held."case_id" IS NOT NEW."case_id"));
END;
CREATE TRIGGER "holdfast_fence_invoices_update" BEFORE UPDATE ON "invoices"
WHEN NOT (EXISTS (SELECT 1 FROM cases AS c WHERE c.tenant = 'acme' AND c.root = 'https://triage.example' AND c.case_id = CAST(NEW."case_id" AS TEXT) AND c.status = 'open' AND c.case_id || ':' || c.epoch || ':' || c.owner = (CASE WHEN NEW."holdfast_token" IS NULL THEN OLD."holdfast_token"
    WHEN substr(NEW."holdfast_token", 1, 7) = 'delete ' AND NEW."holdfast_token" IS NOT OLD."holdfast_token" THEN substr(NEW."holdfast_token", 8) ELSE NEW."holdfast_token" END)) AND NOT EXISTS (SELECT 1 FROM quarantines AS q WHERE q.tenant = 'acme' AND q.root = 'https://triage.example' AND q.case_id = CAST(NEW."case_id" AS TEXT)))
  OR NEW."case_id" IS NOT OLD."case_id"
  OR (NEW."_rowid_" IS NOT OLD."_rowid_") AND EXISTS (SELECT 1 FROM "invoices" AS held WHERE held."_rowid_" = NEW."_rowid_" COLLATE "BINARY" AND (held."case_id" IS NOT NEW."case_id"))
BEGIN
  SELECT RAISE(ABORT, 'holdfast: HF001 UPDATE on invoices: the statement sets no token of the case in holdfast_token') WHERE (substr((CASE WHEN NEW."holdfast_token" IS NULL THEN OLD."holdfast_token"
    WHEN substr(NEW."holdfast_token", 1, 7) = 'delete ' AND NEW."holdfast_token" IS NOT OLD."holdfast_token" THEN substr(NEW."holdfast_token", 8) ELSE NEW."holdfast_token" END), 1, length(CAST(NEW."case_id" AS TEXT)) + 1) = CAST(NEW."case_id" AS TEXT) || ':') IS NOT TRUE;
  SELECT RAISE(ABORT, 'holdfast: HF004 UPDATE on invoices: the case is not in this ledger') WHERE NOT EXISTS (SELECT 1 FROM cases AS c WHERE c.tenant = 'acme' AND c.root = 'https://triage.example' AND c.case_id = CAST(NEW."case_id" AS TEXT));
  SELECT RAISE(ABORT, 'holdfast: HF005 UPDATE on invoices: the case is quarantined') WHERE EXISTS (SELECT 1 FROM quarantines AS q WHERE q.tenant = 'acme' AND q.root = 'https://triage.example' AND q.case_id = CAST(NEW."case_id" AS TEXT));
  SELECT RAISE(ABORT, 'holdfast: HF007 UPDATE on invoices: the case has not come to this epoch') WHERE EXISTS (SELECT 1 FROM cases AS c WHERE c.tenant = 'acme' AND c.root = 'https://triage.example' AND c.case_id = CAST(NEW."case_id" AS TEXT) AND CAST(substr((CASE WHEN NEW."holdfast_token" IS NULL THEN OLD."holdfast_token"
    WHEN substr(NEW."holdfast_token", 1, 7) = 'delete ' AND NEW."holdfast_token" IS NOT OLD."holdfast_token" THEN substr(NEW."holdfast_token", 8) ELSE NEW."holdfast_token" END), length(CAST(NEW."case_id" AS TEXT)) + 2) AS INTEGER) > c.epoch);
  SELECT RAISE(ABORT, 'holdfast: HF002 UPDATE on invoices: the case has a newer epoch') WHERE EXISTS (SELECT 1 FROM cases AS c WHERE c.tenant = 'acme' AND c.root = 'https://triage.example' AND c.case_id = CAST(NEW."case_id" AS TEXT) AND CAST(substr((CASE WHEN NEW."holdfast_token" IS NULL THEN OLD."holdfast_token"
    WHEN substr(NEW."holdfast_token", 1, 7) = 'delete ' AND NEW."holdfast_token" IS NOT OLD."holdfast_token" THEN substr(NEW."holdfast_token", 8) ELSE NEW."holdfast_token" END), length(CAST(NEW."case_id" AS TEXT)) + 2) AS INTEGER) < c.epoch);
  SELECT RAISE(ABORT, 'holdfast: HF003 UPDATE on invoices: the case has another owner') WHERE NOT EXISTS (SELECT 1 FROM cases AS c WHERE c.tenant = 'acme' AND c.root = 'https://triage.example' AND c.case_id = CAST(NEW."case_id" AS TEXT) AND c.case_id || ':' || c.epoch || ':' || c.owner = (CASE WHEN NEW."holdfast_token" IS NULL THEN OLD."holdfast_token"
    WHEN substr(NEW."holdfast_token", 1, 7) = 'delete ' AND NEW."holdfast_token" IS NOT OLD."holdfast_token" THEN substr(NEW."holdfast_token", 8) ELSE NEW."holdfast_token" END));
  SELECT RAISE(ABORT, 'holdfast: HF006 UPDATE on invoices: the case is closed') WHERE EXISTS (SELECT 1 FROM cases AS c WHERE c.tenant = 'acme' AND c.root = 'https://triage.example' AND c.case_id = CAST(NEW."case_id" AS TEXT) AND c.status <> 'open');
  SELECT RAISE(ABORT, 'holdfast: HF008 UPDATE on invoices: a row keeps its case: delete it there, and insert it here') WHERE NEW."case_id" IS NOT OLD."case_id";
  SELECT RAISE(ABORT, 'holdfast: HF008 UPDATE on invoices: the row has a key of a row of another case') WHERE (NEW."_rowid_" IS NOT OLD."_rowid_") AND EXISTS (SELECT 1 FROM "invoices" AS held WHERE held."_rowid_" = NEW."_rowid_" COLLATE "BINARY" AND (held."case_id" IS NOT NEW."case_id"));
END;
CREATE TRIGGER "holdfast_fence_invoices_delete" BEFORE DELETE ON "invoices"
WHEN NOT (EXISTS (SELECT 1 FROM cases AS c WHERE c.tenant = 'acme' AND c.root = 'https://triage.example' AND c.case_id = CAST(OLD."case_id" AS TEXT) AND c.status = 'open' AND c.case_id || ':' || c.epoch || ':' || c.owner = (CASE WHEN substr(OLD."holdfast_token", 1, 7) = 'delete ' THEN substr(OLD."holdfast_token", 8) END)) AND NOT EXISTS (SELECT 1 FROM quarantines AS q WHERE q.tenant = 'acme' AND q.root = 'https://triage.example' AND q.case_id = CAST(OLD."case_id" AS TEXT)))
BEGIN
  SELECT RAISE(ABORT, 'holdfast: HF001 DELETE on invoices: the row was not marked: UPDATE its holdfast_token to ''delete '' and the token first') WHERE (substr((CASE WHEN substr(OLD."holdfast_token", 1, 7) = 'delete ' THEN substr(OLD."holdfast_token", 8) END), 1, length(CAST(OLD."case_id" AS TEXT)) + 1) = CAST(OLD."case_id" AS TEXT) || ':') IS NOT TRUE;
  SELECT RAISE(ABORT, 'holdfast: HF004 DELETE on invoices: the case is not in this ledger') WHERE NOT EXISTS (SELECT 1 FROM cases AS c WHERE c.tenant = 'acme' AND c.root = 'https://triage.example' AND c.case_id = CAST(OLD."case_id" AS TEXT));
  SELECT RAISE(ABORT, 'holdfast: HF005 DELETE on invoices: the case is quarantined') WHERE EXISTS (SELECT 1 FROM quarantines AS q WHERE q.tenant = 'acme' AND q.root = 'https://triage.example' AND q.case_id = CAST(OLD."case_id" AS TEXT));
  SELECT RAISE(ABORT, 'holdfast: HF007 DELETE on invoices: the case has not come to this epoch') WHERE EXISTS (SELECT 1 FROM cases AS c WHERE c.tenant = 'acme' AND c.root = 'https://triage.example' AND c.case_id = CAST(OLD."case_id" AS TEXT) AND CAST(substr((CASE WHEN substr(OLD."holdfast_token", 1, 7) = 'delete ' THEN substr(OLD."holdfast_token", 8) END), length(CAST(OLD."case_id" AS TEXT)) + 2) AS INTEGER) > c.epoch);
  SELECT RAISE(ABORT, 'holdfast: HF002 DELETE on invoices: the case has a newer epoch') WHERE EXISTS (SELECT 1 FROM cases AS c WHERE c.tenant = 'acme' AND c.root = 'https://triage.example' AND c.case_id = CAST(OLD."case_id" AS TEXT) AND CAST(substr((CASE WHEN substr(OLD."holdfast_token", 1, 7) = 'delete ' THEN substr(OLD."holdfast_token", 8) END), length(CAST(OLD."case_id" AS TEXT)) + 2) AS INTEGER) < c.epoch);
  SELECT RAISE(ABORT, 'holdfast: HF003 DELETE on invoices: the case has another owner') WHERE NOT EXISTS (SELECT 1 FROM cases AS c WHERE c.tenant = 'acme' AND c.root = 'https://triage.example' AND c.case_id = CAST(OLD."case_id" AS TEXT) AND c.case_id || ':' || c.epoch || ':' || c.owner = (CASE WHEN substr(OLD."holdfast_token", 1, 7) = 'delete ' THEN substr(OLD."holdfast_token", 8) END));
  SELECT RAISE(ABORT, 'holdfast: HF006 DELETE on invoices: the case is closed') WHERE EXISTS (SELECT 1 FROM cases AS c WHERE c.tenant = 'acme' AND c.root = 'https://triage.example' AND c.case_id = CAST(OLD."case_id" AS TEXT) AND c.status <> 'open');
END;
CREATE TRIGGER "holdfast_fence_invoices_inserted" AFTER INSERT ON "invoices"
WHEN NEW."holdfast_token" IS NOT NULL AND NOT substr(NEW."holdfast_token", 1, 7) = 'delete '
BEGIN
  UPDATE "invoices" SET "holdfast_token" = NULL
    WHERE "_rowid_" = NEW."_rowid_";
END;
CREATE TRIGGER "holdfast_fence_invoices_updated" AFTER UPDATE ON "invoices"
WHEN NEW."holdfast_token" IS NOT NULL AND NOT substr(NEW."holdfast_token", 1, 7) = 'delete '
BEGIN
  UPDATE "invoices" SET "holdfast_token" = NULL
    WHERE "_rowid_" = NEW."_rowid_";
END;
