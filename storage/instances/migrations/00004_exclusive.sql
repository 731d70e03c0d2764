-- +goose Up
-- A value that no two instances share, such as a plan and an account that may have only one instance. NULLs are not compared.
ALTER TABLE instances ADD COLUMN exclusive TEXT;

CREATE UNIQUE INDEX instances_exclusive ON instances (exclusive) WHERE exclusive IS NOT NULL;

-- +goose Down
DROP INDEX instances_exclusive;
ALTER TABLE instances DROP COLUMN exclusive;
