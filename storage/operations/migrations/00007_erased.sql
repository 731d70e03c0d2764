-- +goose Up
-- The audit log entry of the erasure that removed the data of this operation, or empty. Package auditlog restricts changes.
ALTER TABLE operations ADD COLUMN erased_by TEXT NOT NULL DEFAULT '';

-- Erasures select the ended operations of an account, in the order of their IDs.
CREATE INDEX operations_ended_tenant ON operations (tenant, erased_by, id) WHERE finished_at IS NOT NULL;

-- +goose Down
DROP INDEX operations_ended_tenant;
ALTER TABLE operations DROP COLUMN erased_by;
