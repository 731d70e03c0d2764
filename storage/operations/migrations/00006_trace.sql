-- +goose Up
-- The trace within which an operation was accepted, or empty: the attempts of its steps are told as parts of that.
ALTER TABLE operations ADD COLUMN trace TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE operations DROP COLUMN trace;
