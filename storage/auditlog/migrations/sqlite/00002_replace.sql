-- +goose Up
-- INSERT OR REPLACE deletes the present row without its DELETE trigger, unless the connection sets recursive_triggers. The services
-- set it. These triggers also protect the rows from other programs. An undefined rowid is -1 here.
-- +goose StatementBegin
CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM audit WHERE rowid = NEW.rowid)
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER operations_audit_no_replace BEFORE INSERT ON operations
WHEN EXISTS (SELECT 1 FROM operations WHERE id = NEW.id AND audit <> '')
    OR EXISTS (SELECT 1 FROM operations WHERE rowid = NEW.rowid AND audit <> '')
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER operations_audit_no_replace;
DROP TRIGGER audit_no_replace;
