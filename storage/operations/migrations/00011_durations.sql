-- +goose Up
-- Forecasts read the newest operations of each kind that have succeeded. Only the end of an operation writes to the index.
CREATE INDEX operations_durations ON operations (kind, created_at) WHERE state = 'succeeded';

-- +goose Down
DROP INDEX operations_durations;
