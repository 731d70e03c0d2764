-- +goose Up
-- Since when platforms are offered the catalog that they are offered: one row.
CREATE TABLE catalog_offered (
    id    INTEGER     PRIMARY KEY CHECK (id = 1),
    etag  TEXT        NOT NULL,
    since TIMESTAMPTZ NOT NULL
);

-- +goose Down
DROP TABLE catalog_offered;
