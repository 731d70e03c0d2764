-- +goose Up
-- Finds the leftovers of an instance by its Shoot name, which no other instance has.
CREATE INDEX leftovers_shoot ON leftovers (shoot_name);

-- +goose Down
DROP INDEX leftovers_shoot;
