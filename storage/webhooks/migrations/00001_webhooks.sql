-- +goose Up
-- The receivers of events. content is sealed: the URL, and the secrets with which messages are signed. types is a list that is separated by
-- spaces; empty filters select all events. Events up to position have a delivery, or are not selected.
CREATE TABLE webhooks (
    id              TEXT        PRIMARY KEY,
    content         TEXT        NOT NULL,
    types           TEXT        NOT NULL,
    account         TEXT        NOT NULL,
    position        BIGINT      NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL,
    disabled_at     TIMESTAMPTZ,
    disabled_reason TEXT        NOT NULL,
    delivered_at    TIMESTAMPTZ,
    lease_owner     TEXT        NOT NULL,
    lease_until     TIMESTAMPTZ
);

-- The messages that have not been delivered: pending ones, and dead letters. They are removed with their events.
CREATE TABLE webhook_deliveries (
    webhook_id  TEXT        NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    position    BIGINT      NOT NULL REFERENCES events (position) ON DELETE CASCADE,
    subject     TEXT        NOT NULL,
    dead        BOOLEAN     NOT NULL,
    attempts    BIGINT      NOT NULL,
    first_at    TIMESTAMPTZ,
    next_at     TIMESTAMPTZ NOT NULL,
    status      BIGINT      NOT NULL,
    error       TEXT        NOT NULL,
    PRIMARY KEY (webhook_id, position)
);

CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, next_at, position) WHERE NOT dead;
CREATE INDEX webhook_deliveries_subject ON webhook_deliveries (webhook_id, subject, position) WHERE NOT dead;
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (position);

-- +goose Down
DROP TABLE webhook_deliveries;
DROP TABLE webhooks;
