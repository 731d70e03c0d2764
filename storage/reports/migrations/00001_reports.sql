-- +goose Up
-- Reports that one replica makes at an interval. All replicas show the newest one.
CREATE TABLE reports (
    id          TEXT        PRIMARY KEY,
    due_at      TIMESTAMPTZ NOT NULL,
    finished_at TIMESTAMPTZ,
    content     TEXT        NOT NULL
);

-- +goose Down
DROP TABLE reports;
