-- +goose Up
-- The position of the runtime's operation whose configuration the row holds.
ALTER TABLE runtimes ADD COLUMN configured_by BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE runtimes DROP COLUMN configured_by;
