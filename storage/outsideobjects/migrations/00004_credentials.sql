-- +goose Up
-- The kubeconfigs that systems have of runtimes are renewed alike: those in Secrets of the control plane and those of the Reconciler.
-- issued_at is when the present one was issued, problem is why the newest renewal has failed, and renewing_until is the time until which a renewal can
-- be in progress. Operations wait until then. Queries must contain the condition of the index.
ALTER TABLE outside_objects ADD COLUMN issued_at TIMESTAMPTZ;
ALTER TABLE outside_objects ADD COLUMN renewing_until TIMESTAMPTZ;
ALTER TABLE outside_objects ADD COLUMN problem TEXT NOT NULL DEFAULT '';

CREATE INDEX outside_objects_credentials ON outside_objects (due_at) WHERE kind IN ('kubeconfig', 'cluster') AND state = 'created';

-- +goose Down
DROP INDEX outside_objects_credentials;
ALTER TABLE outside_objects DROP COLUMN problem;
ALTER TABLE outside_objects DROP COLUMN renewing_until;
ALTER TABLE outside_objects DROP COLUMN issued_at;
