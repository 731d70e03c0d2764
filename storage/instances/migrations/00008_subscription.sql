-- +goose Up
-- For erasures, which must find instances that have moved to another account.
CREATE INDEX instances_subscription ON instances (subscription_account_id) WHERE subscription_account_id <> '';

-- +goose Down
DROP INDEX instances_subscription;
