-- +goose Up
-- The trace context of the request, or empty. The attempts of the steps are spans of that trace.
ALTER TABLE operations ADD COLUMN trace TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE operations DROP COLUMN trace;
