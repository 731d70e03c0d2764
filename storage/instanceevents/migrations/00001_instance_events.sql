-- +goose Up
-- Events of instances besides their operations. Equal events of a system that follow each other are one row.
CREATE TABLE instance_events (
    instance_id TEXT        NOT NULL,
    system      TEXT        NOT NULL,
    number      BIGINT      NOT NULL,
    result      TEXT        NOT NULL,
    message     TEXT        NOT NULL,
    happened    BIGINT      NOT NULL,
    first_at    TIMESTAMPTZ NOT NULL,
    last_at     TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (instance_id, system, number)
);

CREATE INDEX instance_events_last ON instance_events (last_at);

-- +goose Down
DROP TABLE instance_events;
