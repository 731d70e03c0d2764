-- +goose Up
-- What the broker is about to change in a system, until the event of the change is recorded. A row that its replica has left behind leads to
-- the event at the next check.
CREATE TABLE instance_event_intents (
    instance_id TEXT        NOT NULL,
    system      TEXT        NOT NULL,
    began_at    TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (instance_id, system)
);

-- +goose Down
DROP TABLE instance_event_intents;
