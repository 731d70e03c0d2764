-- +goose Up
CREATE TABLE operations (
    id                TEXT PRIMARY KEY,
    kind              TEXT        NOT NULL,
    instance_id       TEXT        NOT NULL,
    position          BIGINT      NOT NULL,
    predecessor_id    TEXT        NOT NULL,
    state             TEXT        NOT NULL CHECK (state IN ('pending', 'in progress', 'canceling', 'succeeded', 'failed', 'canceled')),
    description       TEXT        NOT NULL,
    problem_message   TEXT        NOT NULL,
    problem_reason    TEXT        NOT NULL,
    problem_component TEXT        NOT NULL,
    finished_stages   TEXT        NOT NULL,
    skipped_steps     TEXT        NOT NULL,
    stage             TEXT        NOT NULL,
    step              TEXT        NOT NULL,
    step_began_at     TIMESTAMPTZ,
    waiting_for       TEXT        NOT NULL,
    woken             BOOLEAN     NOT NULL,
    payload           TEXT        NOT NULL,
    created_at        TIMESTAMPTZ NOT NULL,
    updated_at        TIMESTAMPTZ NOT NULL,
    state_changed_at  TIMESTAMPTZ NOT NULL,
    started_at        TIMESTAMPTZ,
    finished_at       TIMESTAMPTZ,
    next_run_at       TIMESTAMPTZ NOT NULL,
    lease_owner       TEXT        NOT NULL,
    lease_taken_from  TEXT        NOT NULL,
    lease_until       TIMESTAMPTZ,
    fence             BIGINT      NOT NULL,
    UNIQUE (instance_id, position)
);

CREATE UNIQUE INDEX operations_one_active ON operations (instance_id) WHERE state IN ('in progress', 'canceling');
CREATE INDEX operations_due ON operations (next_run_at) WHERE state IN ('pending', 'in progress', 'canceling');
CREATE INDEX operations_waiting_for ON operations (waiting_for) WHERE state IN ('in progress', 'canceling');
CREATE INDEX operations_state_changed ON operations (state_changed_at);
CREATE INDEX operations_created ON operations (created_at, id);

CREATE TABLE step_attempts (
    operation_id TEXT        NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
    stage        TEXT        NOT NULL,
    step         TEXT        NOT NULL,
    number       BIGINT      NOT NULL,
    first_at     TIMESTAMPTZ NOT NULL,
    last_at      TIMESTAMPTZ NOT NULL,
    failures     BIGINT      NOT NULL,
    failing_since TIMESTAMPTZ,
    last_error   TEXT        NOT NULL,
    PRIMARY KEY (operation_id, step)
);

CREATE TABLE timeline (
    operation_id TEXT        NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
    seq          BIGINT      NOT NULL,
    stage        TEXT        NOT NULL,
    step         TEXT        NOT NULL,
    attempt      BIGINT      NOT NULL,
    began_at     TIMESTAMPTZ NOT NULL,
    ended_at     TIMESTAMPTZ NOT NULL,
    outcome      TEXT        NOT NULL,
    message      TEXT        NOT NULL,
    next_run_at  TIMESTAMPTZ,
    PRIMARY KEY (operation_id, seq)
);

-- +goose Down
DROP TABLE timeline;
DROP TABLE step_attempts;
DROP TABLE operations;
