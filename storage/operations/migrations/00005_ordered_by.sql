-- +goose Up
-- The requester of the operation, and the other fields of its audit log entry. Neither ever changes.
ALTER TABLE operations ADD COLUMN ordered_by TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN audit TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE operations DROP COLUMN audit;
ALTER TABLE operations DROP COLUMN ordered_by;
