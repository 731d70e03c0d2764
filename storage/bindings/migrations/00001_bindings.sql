-- +goose Up
-- id is never reused. The platform may reuse binding_id while the previous binding is being removed.
CREATE TABLE bindings (
    id           TEXT PRIMARY KEY,
    instance_id  TEXT        NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
    binding_id   TEXT        NOT NULL,
    runtime_id   TEXT        NOT NULL,
    role         TEXT        NOT NULL,
    lifetime     BIGINT      NOT NULL,
    predecessor  TEXT        NOT NULL,
    app_guid     TEXT        NOT NULL,
    created_by   TEXT        NOT NULL,
    state        TEXT        NOT NULL CHECK (state IN ('creating', 'ready', 'deleting')),
    operation_id TEXT        NOT NULL,
    access       TEXT        NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL,
    expires_at   TIMESTAMPTZ NOT NULL
);

CREATE UNIQUE INDEX bindings_of_instance ON bindings (instance_id, binding_id) WHERE state <> 'deleting';
CREATE INDEX bindings_by_instance ON bindings (instance_id, created_at);
CREATE INDEX bindings_expiry ON bindings (expires_at);
CREATE INDEX bindings_creating ON bindings (created_at) WHERE state = 'creating';

-- +goose Down
DROP TABLE bindings;
