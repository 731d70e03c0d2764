-- +goose Up
-- A value that no two instances share, such as the plan and account that may have one instance only. NULL is not compared.
ALTER TABLE instances ADD COLUMN exclusive TEXT;

CREATE UNIQUE INDEX instances_exclusive ON instances (exclusive) WHERE exclusive IS NOT NULL;

-- +goose Down
DROP INDEX instances_exclusive;
ALTER TABLE instances DROP COLUMN exclusive;
