-- +goose Up
CREATE TABLE orchestrations (
    id          TEXT        PRIMARY KEY,
    kind        TEXT        NOT NULL,
    state       TEXT        NOT NULL,
    description TEXT        NOT NULL,
    parameters  TEXT        NOT NULL,
    ordered_by  TEXT        NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL,
    updated_at  TIMESTAMPTZ NOT NULL
);

CREATE INDEX orchestrations_created ON orchestrations (created_at, id);

-- The instances of an orchestration. operation_id is chosen before the upgrade exists; there are no foreign keys, because the target
-- stays when its instance is deleted. former_ids lists the upgrades that retries have repeated, newest first, separated by spaces.
CREATE TABLE orchestration_targets (
    orchestration_id TEXT        NOT NULL,
    instance_id      TEXT        NOT NULL,
    operation_id     TEXT        NOT NULL UNIQUE,
    former_ids       TEXT        NOT NULL,
    state            TEXT        NOT NULL,
    description      TEXT        NOT NULL,
    provider         TEXT        NOT NULL,
    region           TEXT        NOT NULL,
    not_before       TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (orchestration_id, instance_id)
);

-- Finds the targets that are due, and counts the targets by state.
CREATE INDEX orchestration_targets_due ON orchestration_targets (orchestration_id, state, not_before);

-- +goose Down
DROP TABLE orchestration_targets;
DROP TABLE orchestrations;
