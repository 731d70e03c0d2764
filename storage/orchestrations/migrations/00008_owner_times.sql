-- +goose Up
-- The time that the owner of the instance has chosen for the upgrade, before the deadline of the orchestration, and the user who chose it.
ALTER TABLE orchestration_targets ADD COLUMN chosen_at TIMESTAMPTZ;
ALTER TABLE orchestration_targets ADD COLUMN chosen_by TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE orchestration_targets DROP COLUMN chosen_by;
ALTER TABLE orchestration_targets DROP COLUMN chosen_at;
