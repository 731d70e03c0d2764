-- +goose Up
-- Orders that may have registered a runtime in Director. All attempts of an order share the value in the column label.
CREATE TABLE registrations (
    tenant       TEXT        NOT NULL,
    label        TEXT        NOT NULL,
    runtime_id   TEXT        NOT NULL,
    operation_id TEXT        NOT NULL,
    failure_told BOOLEAN     NOT NULL,
    touched_at   TIMESTAMPTZ NOT NULL,
    held_until   TIMESTAMPTZ,
    PRIMARY KEY (tenant, label)
);

CREATE INDEX registrations_touched ON registrations (touched_at);
CREATE INDEX registrations_untold ON registrations (operation_id) WHERE NOT failure_told;

-- +goose Down
DROP TABLE registrations;
