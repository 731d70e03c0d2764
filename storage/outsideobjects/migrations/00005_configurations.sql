-- +goose Up
-- What an instance's object in a system was last created with or changed to: the configuration of Kyma that the Reconciler has. The values are
-- sealed. id is the instance. issued_at is that of the object; a row with another time is obsolete, because an earlier release has sent another
-- configuration since.
CREATE TABLE outside_configurations (
    id            TEXT PRIMARY KEY,
    configuration TEXT NOT NULL,
    issued_at     TIMESTAMPTZ NOT NULL
);

-- +goose Down
DROP TABLE outside_configurations;
