-- +goose Up
CREATE TABLE instances (
    id                TEXT PRIMARY KEY,
    service_id        TEXT        NOT NULL,
    plan_id           TEXT        NOT NULL,
    plan_name         TEXT        NOT NULL,
    global_account_id TEXT        NOT NULL,
    subaccount_id     TEXT        NOT NULL,
    platform_region   TEXT        NOT NULL,
    provider          TEXT        NOT NULL,
    region            TEXT        NOT NULL,
    name              TEXT        NOT NULL,
    shoot_name        TEXT        NOT NULL UNIQUE,
    runtime_id        TEXT        NOT NULL,
    dashboard_url     TEXT        NOT NULL,
    request           TEXT        NOT NULL,
    created_at        TIMESTAMPTZ NOT NULL,
    updated_at        TIMESTAMPTZ NOT NULL
);

CREATE INDEX instances_created ON instances (created_at, id);
CREATE INDEX instances_account ON instances (global_account_id, created_at, id);
CREATE INDEX instances_subaccount ON instances (subaccount_id, created_at, id);
CREATE INDEX instances_runtime ON instances (runtime_id);

-- +goose Down
DROP TABLE instances;
