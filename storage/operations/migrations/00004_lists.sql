-- +goose Up
-- Lists are sorted newest first. Lists of active operations use the engine's indexes. Lists of succeeded operations, and lists by
-- kind, use operations_created: another index would slow down every operation, and lists are rarely requested.
CREATE INDEX operations_ended_badly ON operations (created_at, id) WHERE state IN ('failed', 'canceled');

-- +goose Down
DROP INDEX operations_ended_badly;
