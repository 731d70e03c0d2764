-- +goose Up
-- Lists show the newest first. What is under way is found by the indexes of the engine, what succeeded, and the kinds, of which there
-- are few, by operations_created: an index costs every operation, and a list is asked for seldom.
CREATE INDEX operations_ended_badly ON operations (created_at, id) WHERE state IN ('failed', 'canceled');

-- +goose Down
DROP INDEX operations_ended_badly;
