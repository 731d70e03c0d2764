-- +goose Up
-- The platforms that may see the operation, separated by spaces, or empty for the default platform. It changes until the operation ends.
ALTER TABLE operations ADD COLUMN visible_to TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE operations DROP COLUMN visible_to;
