-- +goose Up
-- The account that an entry is about, if neither its instance nor its operation identifies the account. Otherwise empty.
ALTER TABLE audit ADD COLUMN account TEXT NOT NULL DEFAULT '';
-- The entry of the erasure that removed the personal data of this entry, or empty.
ALTER TABLE audit ADD COLUMN erased_by TEXT NOT NULL DEFAULT '';

CREATE INDEX audit_account ON audit (account) WHERE account <> '';

-- An erasure may clear the columns ordered_by and entry once, and must name its own entry. All other columns stay.
-- +goose StatementBegin
CREATE FUNCTION audit_allow_erasure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.erased_by = '' AND OLD.action <> 'erase' AND NEW.ordered_by = '' AND NEW.entry = '{}'
        AND to_jsonb(NEW) - 'ordered_by' - 'entry' - 'erased_by' = to_jsonb(OLD) - 'ordered_by' - 'entry' - 'erased_by'
        AND EXISTS (SELECT 1 FROM audit WHERE id = NEW.erased_by AND action = 'erase' AND status = 200)
    THEN
        RETURN NEW;
    END IF;

    RAISE EXCEPTION 'the audit log is append-only';
END
$$;
-- +goose StatementEnd

-- The entry of an operation is a part of its row. An erasure may clear it in the same way, if it is an erasure of the operation's
-- account and the operation has ended. This trigger runs after the update, so its result is ignored.
-- +goose StatementBegin
CREATE FUNCTION operations_audit_allow_erasure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.erased_by = '' AND OLD.finished_at IS NOT NULL
        AND NEW.ordered_by = '' AND NEW.audit = (CASE WHEN OLD.audit = '' THEN '' ELSE '{}' END)
        AND (NEW.id, NEW.kind, NEW.instance_id, NEW.predecessor_id, NEW.created_at, NEW.tenant)
            = (OLD.id, OLD.kind, OLD.instance_id, OLD.predecessor_id, OLD.created_at, OLD.tenant)
        AND EXISTS (SELECT 1 FROM audit WHERE id = NEW.erased_by AND action = 'erase' AND status = 200 AND account = OLD.tenant)
    THEN
        RETURN NEW;
    END IF;

    RAISE EXCEPTION 'the audit log is append-only';
END
$$;
-- +goose StatementEnd

DROP TRIGGER audit_no_update ON audit;
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit FOR EACH ROW EXECUTE FUNCTION audit_allow_erasure();

DROP TRIGGER operations_audit_no_update ON operations;
CREATE TRIGGER operations_audit_no_update
    AFTER UPDATE OF id, kind, instance_id, predecessor_id, created_at, tenant, ordered_by, audit, erased_by ON operations
    FOR EACH ROW EXECUTE FUNCTION operations_audit_allow_erasure();

-- +goose Down
DROP TRIGGER operations_audit_no_update ON operations;
CREATE TRIGGER operations_audit_no_update
    AFTER UPDATE OF id, kind, instance_id, predecessor_id, created_at, ordered_by, audit ON operations
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();

DROP TRIGGER audit_no_update ON audit;
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit FOR EACH ROW EXECUTE FUNCTION audit_refuse();

DROP FUNCTION operations_audit_allow_erasure();
DROP FUNCTION audit_allow_erasure();
DROP INDEX audit_account;
ALTER TABLE audit DROP COLUMN erased_by;
ALTER TABLE audit DROP COLUMN account;
