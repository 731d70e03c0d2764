-- +goose Up
-- The dirty accounts, and the last result of the cleanup hook for each. A row has no tenant, so that the erasure of a tenant leaves nothing.
CREATE TABLE account_cleanups (
    account      TEXT        NOT NULL PRIMARY KEY,
    account_type TEXT        NOT NULL,
    dirty_since  TIMESTAMPTZ NOT NULL,
    attempts     INTEGER     NOT NULL,
    state        TEXT        NOT NULL,
    message      TEXT        NOT NULL,
    next_run_at  TIMESTAMPTZ NOT NULL
);

-- +goose Down
DROP TABLE account_cleanups;
