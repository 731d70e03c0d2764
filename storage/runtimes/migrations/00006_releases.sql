-- +goose Up
-- The artifact of each release of Kyma in a repository, recorded when a replica first resolves the tag. It never changes.
CREATE TABLE releases (
    repository TEXT        NOT NULL,
    version    TEXT        NOT NULL,
    digest     TEXT        NOT NULL,
    pinned_at  TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (repository, version)
);

-- +goose Down
DROP TABLE releases;
