-- +goose Up
-- Deletions and suspensions with steps that were not completed. id is the ID of the deletion or suspension. There is no foreign key to
-- instances: another instance can have the ID of a deleted one. data_id is the operation whose data the next cleanup uses. newest_id is the operation that ran last.
CREATE TABLE leftovers (
    id                      TEXT        NOT NULL PRIMARY KEY,
    kind                    TEXT        NOT NULL,
    instance_id             TEXT        NOT NULL,
    service_id              TEXT        NOT NULL,
    plan_id                 TEXT        NOT NULL,
    plan_name               TEXT        NOT NULL,
    global_account_id       TEXT        NOT NULL,
    subaccount_id           TEXT        NOT NULL,
    subscription_account_id TEXT        NOT NULL,
    platform                TEXT        NOT NULL,
    platform_region         TEXT        NOT NULL,
    provider                TEXT        NOT NULL,
    region                  TEXT        NOT NULL,
    name                    TEXT        NOT NULL,
    shoot_name              TEXT        NOT NULL,
    runtime_id              TEXT        NOT NULL,
    steps                   TEXT        NOT NULL,
    data_id                 TEXT        NOT NULL,
    newest_id               TEXT        NOT NULL,
    created_at              TIMESTAMPTZ,
    deleted_at              TIMESTAMPTZ NOT NULL,
    retry_at                TIMESTAMPTZ NOT NULL
);

CREATE INDEX leftovers_deleted ON leftovers (deleted_at, id);
CREATE INDEX leftovers_retry ON leftovers (retry_at, id);
CREATE INDEX leftovers_account ON leftovers (global_account_id);
CREATE INDEX leftovers_subscription ON leftovers (subscription_account_id) WHERE subscription_account_id <> '';

-- +goose Down
DROP TABLE leftovers;
