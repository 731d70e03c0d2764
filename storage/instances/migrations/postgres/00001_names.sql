-- +goose Up
-- For searches for the beginning of a name, and for lists that are sorted by name. The order is that of bytes, because the order of most
-- locales does not keep names with the same beginning together.
CREATE INDEX instances_by_name ON instances (lower(name) COLLATE "C", id);

-- +goose Down
DROP INDEX IF EXISTS instances_by_name; -- the table may be gone
