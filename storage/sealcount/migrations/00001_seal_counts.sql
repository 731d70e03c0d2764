-- +goose Up
-- The number of values that all replicas have sealed with a key.
CREATE TABLE seal_counts (
    key   TEXT PRIMARY KEY,
    count BIGINT NOT NULL
);

-- +goose Down
DROP TABLE seal_counts;
