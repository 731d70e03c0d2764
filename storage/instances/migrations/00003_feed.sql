-- +goose Up
-- The broker's cursor of the Provisioner's change feed: one row.
CREATE TABLE feed_place (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    cursor TEXT    NOT NULL
);

-- +goose Down
DROP TABLE feed_place;
