-- +goose Up
-- Whether requests of platforms to delete the instance are rejected.
ALTER TABLE instances ADD COLUMN deletion_protection BOOLEAN NOT NULL DEFAULT FALSE;

-- Protected instances may be few or many. The index serves the list of them; without protection, it stays empty.
CREATE INDEX instances_protected ON instances (created_at, id) WHERE deletion_protection;

-- +goose Down
DROP INDEX instances_protected;

ALTER TABLE instances DROP COLUMN deletion_protection;
