-- +goose Up
-- What no two instances share, such as the plan and the account of which there may be one instance. NULL shares with everybody.
ALTER TABLE instances ADD COLUMN exclusive TEXT;

CREATE UNIQUE INDEX instances_exclusive ON instances (exclusive) WHERE exclusive IS NOT NULL;

-- +goose Down
DROP INDEX instances_exclusive;
ALTER TABLE instances DROP COLUMN exclusive;
