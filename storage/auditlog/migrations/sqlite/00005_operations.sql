-- +goose Up
DROP TRIGGER operations_audit_no_delete;
DROP TRIGGER operations_audit_no_update;

-- An operation may be removed when it has ended and its retention period is over.
-- +goose StatementBegin
CREATE TRIGGER operations_audit_no_delete BEFORE DELETE ON operations
WHEN OLD.finished_at IS NULL OR OLD.keep_until IS NULL OR OLD.keep_until > strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd
-- The removal of an operation removes the salt of its record.
-- +goose StatementBegin
CREATE TRIGGER operations_salt_removed AFTER DELETE ON operations
BEGIN
    UPDATE audit_chain SET salt = '' WHERE id = OLD.id AND source = 'operation' AND salt <> '';
END;
-- +goose StatementEnd
-- As in 00003_erasure.sql, and the retention period never changes.
-- +goose StatementBegin
CREATE TRIGGER operations_audit_no_update
BEFORE UPDATE OF id, kind, instance_id, predecessor_id, created_at, tenant, ordered_by, audit, erased_by, keep_until ON operations
WHEN NOT (
    OLD.erased_by = '' AND OLD.finished_at IS NOT NULL
    AND NEW.ordered_by = '' AND NEW.audit = (CASE WHEN OLD.audit = '' THEN '' ELSE '{}' END)
    AND (NEW.rowid, NEW.id, NEW.kind, NEW.instance_id, NEW.predecessor_id, NEW.created_at, NEW.tenant)
        = (OLD.rowid, OLD.id, OLD.kind, OLD.instance_id, OLD.predecessor_id, OLD.created_at, OLD.tenant)
    AND NEW.keep_until IS OLD.keep_until
    AND EXISTS (SELECT 1 FROM audit WHERE id = NEW.erased_by AND action = 'erase' AND status = 200 AND account = OLD.tenant)
)
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER operations_audit_no_update;
DROP TRIGGER operations_salt_removed;
DROP TRIGGER operations_audit_no_delete;

-- +goose StatementBegin
CREATE TRIGGER operations_audit_no_delete BEFORE DELETE ON operations WHEN OLD.audit <> ''
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd
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
