-- +goose Up
-- The position of the operation that recorded the configuration in this row.
ALTER TABLE runtimes ADD COLUMN configured_by BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE runtimes DROP COLUMN configured_by;
