-- +goose Up
-- The messages about upgrades for the notification service. event_id is the ID of the upgrade; there is no foreign key, so that the end
-- of an operation locks nothing. A message is due at next_run_at, unless an earlier one of its event has not ended. It has ended if it
-- was delivered or given up.
CREATE TABLE notifications (
    event_id        TEXT        NOT NULL,
    number          INTEGER     NOT NULL,
    instance_id     TEXT        NOT NULL,
    event_type      TEXT        NOT NULL,
    action          TEXT        NOT NULL,
    happened_at     TIMESTAMPTZ NOT NULL,
    next_run_at     TIMESTAMPTZ NOT NULL,
    first_run_at    TIMESTAMPTZ,
    attempts        INTEGER     NOT NULL,
    ended_at        TIMESTAMPTZ,
    delivered       BOOLEAN     NOT NULL,
    PRIMARY KEY (event_id, number)
);

-- Finds the few messages that are not delivered. Queries must contain the same condition.
CREATE INDEX notifications_due ON notifications (next_run_at) WHERE ended_at IS NULL;
CREATE INDEX notifications_age ON notifications (happened_at);

-- The replica that delivers messages.
CREATE TABLE notification_lease (
    id          INTEGER     NOT NULL PRIMARY KEY,
    owner       TEXT        NOT NULL,
    held_until  TIMESTAMPTZ
);

INSERT INTO notification_lease (id, owner) VALUES (1, '');

-- +goose Down
DROP TABLE notification_lease;
DROP TABLE notifications;
