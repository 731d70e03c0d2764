-- +goose Up
-- One row: the time since which the current catalog is offered. Only replicas of earlier versions use it.
CREATE TABLE catalog_offered (
    id    INTEGER     PRIMARY KEY CHECK (id = 1),
    etag  TEXT        NOT NULL,
    since TIMESTAMPTZ NOT NULL
);

-- +goose Down
DROP TABLE catalog_offered;
