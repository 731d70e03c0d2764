-- +goose Up
CREATE TABLE audit (
    id           TEXT PRIMARY KEY,
    at           TIMESTAMPTZ NOT NULL,
    action       TEXT        NOT NULL,
    instance_id  TEXT        NOT NULL,
    operation_id TEXT        NOT NULL,
    ordered_by   TEXT        NOT NULL,
    status       INTEGER     NOT NULL,
    entry        TEXT        NOT NULL,
    keep_until   TIMESTAMPTZ
);

CREATE INDEX audit_at ON audit (at, id);
CREATE INDEX audit_instance ON audit (instance_id, at, id);
CREATE INDEX audit_kept ON audit (keep_until);

-- +goose StatementBegin
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
WHEN OLD.keep_until IS NULL OR OLD.keep_until > strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
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
-- +goose StatementBegin
CREATE TRIGGER operations_audit_no_delete BEFORE DELETE ON operations WHEN OLD.audit <> ''
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER operations_audit_no_delete;
DROP TRIGGER operations_audit_no_update;
DROP TABLE audit;
