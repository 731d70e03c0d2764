-- +goose Up
-- Each filter of a list has an index. Those that match one of two columns need one for both.
CREATE INDEX instances_region ON instances (region);
CREATE INDEX instances_platform_region ON instances (platform_region);
CREATE INDEX instances_plan ON instances (plan_id);
CREATE INDEX instances_plan_name ON instances (plan_name);

-- Nobody looks for an instance by its runtime.
DROP INDEX instances_runtime;

-- +goose Down
CREATE INDEX instances_runtime ON instances (runtime_id);

DROP INDEX instances_plan_name;
DROP INDEX instances_plan;
DROP INDEX instances_platform_region;
DROP INDEX instances_region;
