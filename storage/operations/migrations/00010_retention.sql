-- +goose Up
-- The end of the retention period. NULL, as in all rows of earlier versions, keeps the operation forever. It never changes.
ALTER TABLE operations ADD COLUMN keep_until TIMESTAMPTZ;
-- When the retention next examines the operation: at the end of its retention period, and later again if it was still needed.
ALTER TABLE operations ADD COLUMN examine_at TIMESTAMPTZ;

-- Only operations without a timeline are in the index, so neither accepting nor running an operation writes to it.
CREATE INDEX operations_examined ON operations (examine_at) WHERE timeline_removed_at IS NOT NULL AND examine_at IS NOT NULL;

-- +goose Down
DROP INDEX operations_examined;
ALTER TABLE operations DROP COLUMN examine_at;
ALTER TABLE operations DROP COLUMN keep_until;
