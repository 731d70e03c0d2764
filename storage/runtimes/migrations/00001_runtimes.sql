-- +goose Up
CREATE TABLE runtimes (
    id             TEXT PRIMARY KEY,
    tenant         TEXT        NOT NULL,
    subaccount     TEXT        NOT NULL,
    shoot_name     TEXT        NOT NULL,
    provisioned_by TEXT        NOT NULL,
    configuration  TEXT        NOT NULL,
    created_at     TIMESTAMPTZ NOT NULL,
    deleted_at     TIMESTAMPTZ
);

CREATE UNIQUE INDEX runtimes_one_shoot ON runtimes (shoot_name) WHERE deleted_at IS NULL;

CREATE TABLE idempotency_keys (
    tenant       TEXT        NOT NULL,
    key          TEXT        NOT NULL,
    operation_id TEXT        NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant, key)
);

-- +goose Down
DROP TABLE idempotency_keys;
DROP TABLE runtimes;
