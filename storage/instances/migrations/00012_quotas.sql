-- +goose Up
-- For quotas of all tenants together in a region or a plan. It has few different values, so it stays small.
CREATE INDEX instances_region_plan ON instances (region, plan_id);

-- +goose Down
DROP INDEX instances_region_plan;
