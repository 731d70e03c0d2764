-- +goose Up
-- An instance whose time is over expires also while it is suspended, and then once.
DROP INDEX instances_expiring;
CREATE INDEX instances_expiring ON instances (expires_at) WHERE expires_at IS NOT NULL AND (NOT suspended OR expired_at IS NULL);

-- +goose Down
DROP INDEX instances_expiring;
CREATE INDEX instances_expiring ON instances (expires_at) WHERE expires_at IS NOT NULL AND NOT suspended;
