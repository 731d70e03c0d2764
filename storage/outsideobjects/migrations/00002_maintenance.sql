-- +goose Up
-- Finds the few evaluations that are in maintenance. Queries must contain the same condition.
CREATE INDEX outside_objects_maintenance ON outside_objects (instance_id)
    WHERE kind IN ('internal evaluation in maintenance', 'external evaluation in maintenance');

-- +goose Down
DROP INDEX outside_objects_maintenance;
