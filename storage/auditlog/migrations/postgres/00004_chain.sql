-- +goose Up
-- The hash chain over the audit log, see package internal/audit/chain. A record covers the row with its ID in the table audit (source
-- 'entry') or operations (source 'operation'). Replicas add records after the commit of the rows.
CREATE TABLE audit_chain (
    number     BIGINT PRIMARY KEY,
    chained_at TIMESTAMPTZ NOT NULL,
    source     TEXT        NOT NULL,
    id         TEXT        NOT NULL,
    keep_until TIMESTAMPTZ,
    salt       TEXT        NOT NULL,
    personal   TEXT        NOT NULL,
    content    TEXT        NOT NULL,
    hash       TEXT        NOT NULL,
    UNIQUE (id, source)
);

-- The last record, the lease of the replica that adds records, the newest time of a chained row of each table, and the last records that were
-- archived and delivered.
CREATE TABLE audit_chain_head (
    id            INTEGER PRIMARY KEY CHECK (id = 1),
    number        BIGINT  NOT NULL,
    hash          TEXT    NOT NULL,
    lease_owner   TEXT    NOT NULL,
    lease_until   TIMESTAMPTZ,
    entries_at    TIMESTAMPTZ,
    operations_at TIMESTAMPTZ,
    archived      BIGINT  NOT NULL DEFAULT 0,
    delivered     BIGINT  NOT NULL DEFAULT 0
);

INSERT INTO audit_chain_head (id, number, hash, lease_owner) VALUES (1, 0, '', '');

-- A record changes only by losing its salt, when its row is erased or removed.
-- +goose StatementBegin
CREATE FUNCTION audit_chain_allow_erasure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.salt = '' AND to_jsonb(NEW) - 'salt' = to_jsonb(OLD) - 'salt'
        AND NOT EXISTS (SELECT 1 FROM audit WHERE OLD.source = 'entry' AND id = OLD.id AND erased_by = '')
        AND NOT EXISTS (SELECT 1 FROM operations WHERE OLD.source = 'operation' AND id = OLD.id AND erased_by = '')
    THEN
        RETURN NEW;
    END IF;

    RAISE EXCEPTION 'the audit log is append-only';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER audit_chain_no_update BEFORE UPDATE ON audit_chain FOR EACH ROW EXECUTE FUNCTION audit_chain_allow_erasure();
CREATE TRIGGER audit_chain_no_delete BEFORE DELETE ON audit_chain FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_chain_no_truncate BEFORE TRUNCATE ON audit_chain FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_chain_head_no_delete BEFORE DELETE ON audit_chain_head FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_chain_head_no_truncate BEFORE TRUNCATE ON audit_chain_head FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();

-- An erasure and the end of the retention period remove the salt in their own transaction, also those of earlier releases.
-- +goose StatementBegin
CREATE FUNCTION audit_chain_remove_salt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE audit_chain SET salt = '' WHERE id = OLD.id AND source = TG_ARGV[0] AND salt <> '';

    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER audit_salt_erased AFTER UPDATE OF erased_by ON audit
    FOR EACH ROW EXECUTE FUNCTION audit_chain_remove_salt('entry');
CREATE TRIGGER audit_salt_removed AFTER DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION audit_chain_remove_salt('entry');
CREATE TRIGGER operations_salt_erased AFTER UPDATE OF erased_by ON operations
    FOR EACH ROW EXECUTE FUNCTION audit_chain_remove_salt('operation');

-- +goose Down
DROP TRIGGER operations_salt_erased ON operations;
DROP TRIGGER audit_salt_removed ON audit;
DROP TRIGGER audit_salt_erased ON audit;
DROP TABLE audit_chain_head;
DROP TABLE audit_chain;
DROP FUNCTION audit_chain_remove_salt();
DROP FUNCTION audit_chain_allow_erasure();
