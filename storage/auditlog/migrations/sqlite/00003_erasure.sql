-- +goose Up
-- The account that an entry is about, if neither its instance nor its operation identifies the account. Otherwise empty.
ALTER TABLE audit ADD COLUMN account TEXT NOT NULL DEFAULT '';
-- The entry of the erasure that removed the personal data of this entry, or empty.
ALTER TABLE audit ADD COLUMN erased_by TEXT NOT NULL DEFAULT '';

CREATE INDEX audit_account ON audit (account) WHERE account <> '';

DROP TRIGGER audit_no_update;
DROP TRIGGER operations_audit_no_update;

-- An erasure may clear the columns ordered_by and entry once, and must name its own entry. All other columns stay. A migration
-- that adds a column must add it to this trigger.
-- +goose StatementBegin
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
WHEN NOT (
    OLD.erased_by = '' AND OLD.action <> 'erase' AND NEW.ordered_by = '' AND NEW.entry = '{}'
    AND (NEW.rowid, NEW.id, NEW.at, NEW.action, NEW.instance_id, NEW.operation_id, NEW.status, NEW.account)
        = (OLD.rowid, OLD.id, OLD.at, OLD.action, OLD.instance_id, OLD.operation_id, OLD.status, OLD.account)
    AND NEW.keep_until IS OLD.keep_until
    AND EXISTS (SELECT 1 FROM audit WHERE id = NEW.erased_by AND action = 'erase' AND status = 200)
)
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd
-- The entry of an operation is a part of its row. An erasure may clear it in the same way, if it is an erasure of the operation's
-- account and the operation has ended.
-- +goose StatementBegin
CREATE TRIGGER operations_audit_no_update
BEFORE UPDATE OF id, kind, instance_id, predecessor_id, created_at, tenant, ordered_by, audit, erased_by ON operations
WHEN NOT (
    OLD.erased_by = '' AND OLD.finished_at IS NOT NULL
    AND NEW.ordered_by = '' AND NEW.audit = (CASE WHEN OLD.audit = '' THEN '' ELSE '{}' END)
    AND (NEW.rowid, NEW.id, NEW.kind, NEW.instance_id, NEW.predecessor_id, NEW.created_at, NEW.tenant)
        = (OLD.rowid, OLD.id, OLD.kind, OLD.instance_id, OLD.predecessor_id, OLD.created_at, OLD.tenant)
    AND EXISTS (SELECT 1 FROM audit WHERE id = NEW.erased_by AND action = 'erase' AND status = 200 AND account = OLD.tenant)
)
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER operations_audit_no_update;
DROP TRIGGER audit_no_update;

-- +goose StatementBegin
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER operations_audit_no_update
BEFORE UPDATE OF id, kind, instance_id, predecessor_id, created_at, ordered_by, audit ON operations
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd

DROP INDEX audit_account;
ALTER TABLE audit DROP COLUMN erased_by;
ALTER TABLE audit DROP COLUMN account;
