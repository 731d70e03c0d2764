-- +goose Up
-- The orchestration whose upgrades this one rolls back; empty if it upgrades.
ALTER TABLE orchestrations ADD COLUMN undoes TEXT NOT NULL DEFAULT '';

-- Finds the undo of an orchestration.
CREATE INDEX orchestrations_undoes ON orchestrations (undoes) WHERE undoes <> '';

-- +goose Down
DROP INDEX orchestrations_undoes;
ALTER TABLE orchestrations DROP COLUMN undoes;
