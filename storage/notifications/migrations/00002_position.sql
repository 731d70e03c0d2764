-- +goose Up
-- The position of the last event of the log that was turned into messages. Messages from before this column are rows already, also those
-- of upgrades that have not ended: reading the log from its beginning adds only what is missing.
ALTER TABLE notification_lease ADD COLUMN position BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE notification_lease DROP COLUMN position;
