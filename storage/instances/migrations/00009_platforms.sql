-- +goose Up
-- The platform that owns the instance, and the platforms that may also use it, separated by spaces.
ALTER TABLE instances ADD COLUMN platform TEXT NOT NULL DEFAULT 'default';
ALTER TABLE instances ADD COLUMN shared_with TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE instances DROP COLUMN shared_with;
ALTER TABLE instances DROP COLUMN platform;
