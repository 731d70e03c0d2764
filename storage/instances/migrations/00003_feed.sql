-- +goose Up
-- Where in the Provisioner's feed of changes the broker is: one row.
CREATE TABLE feed_place (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    cursor TEXT    NOT NULL
);

-- +goose Down
DROP TABLE feed_place;
