-- +goose Up
-- A plan is an orchestration in the state planned. applied_at is when it was applied; it stays NULL in orchestrations without a plan.
ALTER TABLE orchestrations ADD COLUMN applied_by TEXT NOT NULL DEFAULT '';
ALTER TABLE orchestrations ADD COLUMN applied_at TIMESTAMPTZ;

-- The versions before and after the upgrade, as planned.
ALTER TABLE orchestration_targets ADD COLUMN from_version TEXT NOT NULL DEFAULT '';
ALTER TABLE orchestration_targets ADD COLUMN to_version TEXT NOT NULL DEFAULT '';

DROP INDEX orchestrations_unfinished;
CREATE INDEX orchestrations_unfinished ON orchestrations (id) WHERE state NOT IN ('canceled', 'succeeded', 'failed', 'planned', 'expired');

-- Finds the plans that have expired.
CREATE INDEX orchestrations_planned ON orchestrations (created_at) WHERE state = 'planned';

-- +goose Down
DROP INDEX orchestrations_planned;
DROP INDEX orchestrations_unfinished;
CREATE INDEX orchestrations_unfinished ON orchestrations (id) WHERE state NOT IN ('canceled', 'succeeded', 'failed');
ALTER TABLE orchestration_targets DROP COLUMN to_version;
ALTER TABLE orchestration_targets DROP COLUMN from_version;
ALTER TABLE orchestrations DROP COLUMN applied_at;
ALTER TABLE orchestrations DROP COLUMN applied_by;
