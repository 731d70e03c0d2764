-- +goose Up
-- Find whether the start of the maintenance of an upgrade was recorded. Queries must contain the same condition.
CREATE INDEX new_events_maintenance ON new_events (operation_id) WHERE type = 'maintenance.started';
CREATE INDEX events_maintenance ON events (operation_id) WHERE type = 'maintenance.started';

-- +goose Down
DROP INDEX events_maintenance;
DROP INDEX new_events_maintenance;
