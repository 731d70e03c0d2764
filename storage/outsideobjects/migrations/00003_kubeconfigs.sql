-- +goose Up
-- When the kubeconfig in an object is renewed, and when the present one expires. Both are NULL until the first renewal. Queries must contain the
-- condition of the index.
ALTER TABLE outside_objects ADD COLUMN due_at TIMESTAMPTZ;
ALTER TABLE outside_objects ADD COLUMN expires_at TIMESTAMPTZ;

CREATE INDEX outside_objects_kubeconfigs ON outside_objects (due_at) WHERE kind = 'kubeconfig' AND state = 'created';

-- +goose Down
DROP INDEX outside_objects_kubeconfigs;
ALTER TABLE outside_objects DROP COLUMN expires_at;
ALTER TABLE outside_objects DROP COLUMN due_at;
