-- +goose Up
-- For lists that are sorted by plan or region. The newest instance is the last of its plan and of its region, so accepting one writes to few pages.
CREATE INDEX instances_by_plan ON instances (plan_name, created_at, id);
CREATE INDEX instances_by_region ON instances (region, created_at, id);

-- For searches. Accepting an instance does not write to this index: the runtime is unknown.
CREATE INDEX instances_by_runtime ON instances (runtime_id) WHERE runtime_id <> '';

-- +goose Down
DROP INDEX instances_by_runtime;
DROP INDEX instances_by_region;
DROP INDEX instances_by_plan;
