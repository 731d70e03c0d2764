-- +goose Up
-- On whose behalf an operation was accepted, and what else the audit trail tells of that. Neither ever changes.
ALTER TABLE operations ADD COLUMN ordered_by TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN audit TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE operations DROP COLUMN audit;
ALTER TABLE operations DROP COLUMN ordered_by;
