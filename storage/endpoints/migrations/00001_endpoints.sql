-- +goose Up
-- The addresses of runtimes by instance. An empty endpoint has not been read yet. There is no foreign key: package broker/refresh
-- removes the rows of instances without a runtime.
CREATE TABLE endpoints (
    id       TEXT        PRIMARY KEY,
    endpoint TEXT        NOT NULL,
    due_at   TIMESTAMPTZ NOT NULL
);

CREATE INDEX endpoints_due ON endpoints (due_at);

-- +goose Down
DROP TABLE endpoints;
