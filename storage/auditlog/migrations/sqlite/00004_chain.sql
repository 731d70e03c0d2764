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
CREATE TRIGGER audit_chain_no_update BEFORE UPDATE ON audit_chain
WHEN NOT (
    NEW.salt = ''
    AND (NEW.rowid, NEW.number, NEW.chained_at, NEW.source, NEW.id, NEW.personal, NEW.content, NEW.hash)
        = (OLD.rowid, OLD.number, OLD.chained_at, OLD.source, OLD.id, OLD.personal, OLD.content, OLD.hash)
    AND NEW.keep_until IS OLD.keep_until
    AND NOT EXISTS (SELECT 1 FROM audit WHERE OLD.source = 'entry' AND id = OLD.id AND erased_by = '')
    AND NOT EXISTS (SELECT 1 FROM operations WHERE OLD.source = 'operation' AND id = OLD.id AND erased_by = '')
)
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_chain_no_delete BEFORE DELETE ON audit_chain
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd
-- See 00002_replace.sql.
-- +goose StatementBegin
CREATE TRIGGER audit_chain_no_replace BEFORE INSERT ON audit_chain
WHEN EXISTS (SELECT 1 FROM audit_chain WHERE number = NEW.number) OR EXISTS (SELECT 1 FROM audit_chain WHERE rowid = NEW.rowid)
    OR EXISTS (SELECT 1 FROM audit_chain WHERE id = NEW.id AND source = NEW.source)
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_chain_head_no_delete BEFORE DELETE ON audit_chain_head
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_chain_head_no_replace BEFORE INSERT ON audit_chain_head
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
-- +goose StatementEnd
-- An erasure and the end of the retention period remove the salt in their own transaction, also those of earlier releases.
-- +goose StatementBegin
CREATE TRIGGER audit_salt_erased AFTER UPDATE OF erased_by ON audit
BEGIN
    UPDATE audit_chain SET salt = '' WHERE id = OLD.id AND source = 'entry' AND salt <> '';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_salt_removed AFTER DELETE ON audit
BEGIN
    UPDATE audit_chain SET salt = '' WHERE id = OLD.id AND source = 'entry' AND salt <> '';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER operations_salt_erased AFTER UPDATE OF erased_by ON operations
BEGIN
    UPDATE audit_chain SET salt = '' WHERE id = OLD.id AND source = 'operation' AND salt <> '';
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER operations_salt_erased;
DROP TRIGGER audit_salt_removed;
DROP TRIGGER audit_salt_erased;
DROP TABLE audit_chain_head;
DROP TABLE audit_chain;
