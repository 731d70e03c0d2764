-- +goose Up
-- Finds the unfinished orchestrations without reading all of them.
CREATE INDEX orchestrations_unfinished ON orchestrations (id) WHERE state NOT IN ('canceled', 'succeeded', 'failed');

-- +goose Down
DROP INDEX orchestrations_unfinished;
