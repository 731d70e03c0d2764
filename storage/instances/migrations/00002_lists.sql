-- +goose Up
-- No query selects instances by runtime. Regions and plans are few: their lists use instances_created.
DROP INDEX instances_runtime;

-- +goose Down
CREATE INDEX instances_runtime ON instances (runtime_id);
