-- +goose Up
-- The maintenance window of the instance, in the form of fleet.Window.String; empty means none. not_before and not_after are the begin
-- and the end of its next occurrence. Without an end, not_after is NULL.
ALTER TABLE orchestration_targets ADD COLUMN maintenance_window TEXT NOT NULL DEFAULT '';
ALTER TABLE orchestration_targets ADD COLUMN not_after TIMESTAMPTZ;

-- Finds the targets whose windows are over.
CREATE INDEX orchestration_targets_windows ON orchestration_targets (orchestration_id, not_after) WHERE state = 'pending' AND not_after IS NOT NULL;

-- +goose Down
DROP INDEX orchestration_targets_windows;
ALTER TABLE orchestration_targets DROP COLUMN not_after;
ALTER TABLE orchestration_targets DROP COLUMN maintenance_window;
