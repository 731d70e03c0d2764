-- +goose Up
-- SQLite permits NULL in a primary key. With a new key of NULL, the comparisons in the triggers for updates are NULL instead of false, so
-- that an erasure could remove the key.
-- +goose StatementBegin
CREATE TRIGGER audit_no_null_id BEFORE UPDATE OF id ON audit WHEN NEW.id IS NULL
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER operations_audit_no_null_id BEFORE UPDATE OF id ON operations WHEN NEW.id IS NULL
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_chain_no_null_number BEFORE UPDATE OF number ON audit_chain WHEN NEW.number IS NULL
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER audit_chain_no_null_number;
DROP TRIGGER operations_audit_no_null_id;
DROP TRIGGER audit_no_null_id;
