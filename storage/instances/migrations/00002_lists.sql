-- +goose Up
-- No query selects instances by runtime. Lists by region or plan use instances_created, because there are few regions and plans.
DROP INDEX instances_runtime;

-- +goose Down
CREATE INDEX instances_runtime ON instances (runtime_id);
