-- +goose Up
CREATE TABLE write_checks (
    replica TEXT        NOT NULL,
    number  BIGINT      NOT NULL,
    at      TIMESTAMPTZ NOT NULL,
    content TEXT        NOT NULL,
    PRIMARY KEY (replica, number)
);

-- +goose Down
DROP TABLE write_checks;
