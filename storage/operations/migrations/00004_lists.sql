-- +goose Up
-- Lists show the newest first. What is under way is found by the indexes of the engine, what succeeded by operations_created.
CREATE INDEX operations_of_kind ON operations (kind, created_at, id);
CREATE INDEX operations_ended_badly ON operations (created_at, id) WHERE state IN ('failed', 'canceled');

-- +goose Down
DROP INDEX operations_ended_badly;
DROP INDEX operations_of_kind;
