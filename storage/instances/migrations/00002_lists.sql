-- +goose Up
-- Nobody looks for an instance by its runtime. Regions and plans are few: their lists follow instances_created.
DROP INDEX instances_runtime;

-- +goose Down
CREATE INDEX instances_runtime ON instances (runtime_id);
