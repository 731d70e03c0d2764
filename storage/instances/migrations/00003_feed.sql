-- +goose Up
-- One row: the broker's position in the Provisioner's change feed.
CREATE TABLE feed_place (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    cursor TEXT    NOT NULL
);

-- +goose Down
DROP TABLE feed_place;
