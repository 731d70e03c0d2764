-- +goose Up
-- missed_at is when the webhook last skipped events that retention had removed. pending_from is the position of the first pending
-- event at the time when the webhook was disabled.
ALTER TABLE webhooks ADD COLUMN missed_at TIMESTAMPTZ;
ALTER TABLE webhooks ADD COLUMN pending_from BIGINT;

-- +goose Down
ALTER TABLE webhooks DROP COLUMN pending_from;
ALTER TABLE webhooks DROP COLUMN missed_at;
