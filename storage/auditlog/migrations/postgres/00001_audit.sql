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
CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit FOR EACH ROW
    WHEN (OLD.keep_until IS NULL OR OLD.keep_until > clock_timestamp()) EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();

-- These columns of an operation belong to the audit log. The trigger runs only if a statement sets one of them. A trigger without
-- columns would run for every row that the engine changes.
CREATE TRIGGER operations_audit_no_update
    AFTER UPDATE OF id, kind, instance_id, predecessor_id, created_at, ordered_by, audit ON operations
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER operations_audit_no_delete BEFORE DELETE ON operations FOR EACH ROW WHEN (OLD.audit <> '') EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER operations_audit_no_truncate BEFORE TRUNCATE ON operations FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();

-- +goose Down
DROP TRIGGER operations_audit_no_truncate ON operations;
DROP TRIGGER operations_audit_no_delete ON operations;
DROP TRIGGER operations_audit_no_update ON operations;
DROP TABLE audit;
DROP FUNCTION audit_refuse();
