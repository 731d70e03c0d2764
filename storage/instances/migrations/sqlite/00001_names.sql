-- +goose Up
-- For searches for the beginning of a name, and for lists that are sorted by name. SQLite compares bytes.
CREATE INDEX instances_by_name ON instances (lower(name), id);

-- +goose Down
DROP INDEX IF EXISTS instances_by_name; -- the table may be gone
