-- +goose Up
-- The wave that runs. soak_until is when the next one begins, or NULL while upgrades of this one are unfinished.
ALTER TABLE orchestrations ADD COLUMN wave INTEGER NOT NULL DEFAULT 1;
ALTER TABLE orchestrations ADD COLUMN soak_until TIMESTAMPTZ;

-- accepted marks a failure that an operator has accepted by resuming the orchestration: the failure gate no longer counts it.
ALTER TABLE orchestration_targets ADD COLUMN wave INTEGER NOT NULL DEFAULT 1;
ALTER TABLE orchestration_targets ADD COLUMN accepted BOOLEAN NOT NULL DEFAULT FALSE;

-- Finds the targets that are due in the order of their waves, without sorting.
CREATE INDEX orchestration_targets_waves ON orchestration_targets (orchestration_id, state, wave, not_before, instance_id);
DROP INDEX orchestration_targets_due;

-- +goose Down
CREATE INDEX orchestration_targets_due ON orchestration_targets (orchestration_id, state, not_before);
DROP INDEX orchestration_targets_waves;
ALTER TABLE orchestration_targets DROP COLUMN accepted;
ALTER TABLE orchestration_targets DROP COLUMN wave;
ALTER TABLE orchestrations DROP COLUMN soak_until;
ALTER TABLE orchestrations DROP COLUMN wave;
