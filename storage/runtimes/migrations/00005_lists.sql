-- +goose Up
-- The provider and the region of the cluster in plaintext, for lists. NULL is a row of an older replica, whose configuration has them.
ALTER TABLE runtimes ADD COLUMN provider TEXT;
ALTER TABLE runtimes ADD COLUMN region TEXT;

-- Lists are sorted newest first. Regions are few: their lists use runtimes_created.
CREATE INDEX runtimes_created ON runtimes (created_at, id);
CREATE INDEX runtimes_tenant ON runtimes (tenant, created_at, id);
CREATE INDEX runtimes_shoot ON runtimes (shoot_name, created_at, id);
CREATE INDEX runtimes_without_region ON runtimes (id) WHERE region IS NULL;

-- +goose Down
DROP INDEX runtimes_without_region;
DROP INDEX runtimes_shoot;
DROP INDEX runtimes_tenant;
DROP INDEX runtimes_created;

ALTER TABLE runtimes DROP COLUMN region;
ALTER TABLE runtimes DROP COLUMN provider;
