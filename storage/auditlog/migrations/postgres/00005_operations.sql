-- +goose Up
-- An operation may be removed when it has ended and its retention period is over.
DROP TRIGGER operations_audit_no_delete ON operations;
CREATE TRIGGER operations_audit_no_delete BEFORE DELETE ON operations FOR EACH ROW
    WHEN (OLD.finished_at IS NULL OR OLD.keep_until IS NULL OR OLD.keep_until > clock_timestamp()) EXECUTE FUNCTION audit_refuse();

-- The removal of an operation removes the salt of its record.
CREATE TRIGGER operations_salt_removed AFTER DELETE ON operations
    FOR EACH ROW EXECUTE FUNCTION audit_chain_remove_salt('operation');

-- The retention period never changes.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION operations_audit_allow_erasure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.erased_by = '' AND OLD.finished_at IS NOT NULL
        AND NEW.ordered_by = '' AND NEW.audit = (CASE WHEN OLD.audit = '' THEN '' ELSE '{}' END)
        AND (NEW.id, NEW.kind, NEW.instance_id, NEW.predecessor_id, NEW.created_at, NEW.tenant)
            = (OLD.id, OLD.kind, OLD.instance_id, OLD.predecessor_id, OLD.created_at, OLD.tenant)
        AND NEW.keep_until IS NOT DISTINCT FROM OLD.keep_until
        AND EXISTS (SELECT 1 FROM audit WHERE id = NEW.erased_by AND action = 'erase' AND status = 200 AND account = OLD.tenant)
    THEN
        RETURN NEW;
    END IF;

    RAISE EXCEPTION 'the audit log is append-only';
END
$$;
-- +goose StatementEnd

DROP TRIGGER operations_audit_no_update ON operations;
CREATE TRIGGER operations_audit_no_update
    AFTER UPDATE OF id, kind, instance_id, predecessor_id, created_at, tenant, ordered_by, audit, erased_by, keep_until ON operations
    FOR EACH ROW EXECUTE FUNCTION operations_audit_allow_erasure();

-- +goose Down
DROP TRIGGER operations_audit_no_update ON operations;
CREATE TRIGGER operations_audit_no_update
    AFTER UPDATE OF id, kind, instance_id, predecessor_id, created_at, tenant, ordered_by, audit, erased_by ON operations
    FOR EACH ROW EXECUTE FUNCTION operations_audit_allow_erasure();

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION operations_audit_allow_erasure() RETURNS trigger LANGUAGE plpgsql AS $$
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

DROP TRIGGER operations_salt_removed ON operations;
DROP TRIGGER operations_audit_no_delete ON operations;
CREATE TRIGGER operations_audit_no_delete BEFORE DELETE ON operations FOR EACH ROW WHEN (OLD.audit <> '') EXECUTE FUNCTION audit_refuse();
