-- +goose Up
-- Lists are sorted newest first. Active operations are found by the engine's indexes; succeeded ones, and the few kinds, by
-- operations_created: an index slows down every operation, and lists are rarely requested.
CREATE INDEX operations_ended_badly ON operations (created_at, id) WHERE state IN ('failed', 'canceled');

-- +goose Down
DROP INDEX operations_ended_badly;
