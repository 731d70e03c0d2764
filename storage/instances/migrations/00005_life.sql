-- +goose Up
-- The tenant that ordered an instance which has moved to another tenant. The Provisioner knows the runtime under this tenant.
ALTER TABLE instances ADD COLUMN subscription_account_id TEXT NOT NULL DEFAULT '';
-- The runtime's maintenance version, from its plan.
ALTER TABLE instances ADD COLUMN maintenance_version TEXT NOT NULL DEFAULT '';
ALTER TABLE instances ADD COLUMN suspended BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE instances ADD COLUMN expires_at TIMESTAMPTZ;
ALTER TABLE instances ADD COLUMN expired_at TIMESTAMPTZ;

-- Accepting an instance rarely writes to these indexes: few plans expire, and no instance is created suspended.
CREATE INDEX instances_expiring ON instances (expires_at) WHERE expires_at IS NOT NULL AND NOT suspended;
CREATE INDEX instances_suspended ON instances (created_at, id) WHERE suspended;

-- +goose Down
DROP INDEX instances_suspended;
DROP INDEX instances_expiring;

ALTER TABLE instances DROP COLUMN expired_at;
ALTER TABLE instances DROP COLUMN expires_at;
ALTER TABLE instances DROP COLUMN suspended;
ALTER TABLE instances DROP COLUMN maintenance_version;
ALTER TABLE instances DROP COLUMN subscription_account_id;
