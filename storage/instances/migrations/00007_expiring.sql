-- +goose Up
-- A suspended instance expires, too, but only once.
DROP INDEX instances_expiring;
CREATE INDEX instances_expiring ON instances (expires_at) WHERE expires_at IS NOT NULL AND (NOT suspended OR expired_at IS NULL);

-- +goose Down
DROP INDEX instances_expiring;
CREATE INDEX instances_expiring ON instances (expires_at) WHERE expires_at IS NOT NULL AND NOT suspended;
