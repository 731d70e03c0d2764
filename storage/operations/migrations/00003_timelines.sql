-- +goose Up
-- The first of several equal attempts that share an entry. 0 marks an entry of a single attempt.
ALTER TABLE timeline ADD COLUMN first_attempt BIGINT NOT NULL DEFAULT 0;
-- When the timeline was removed at the end of its retention period.
ALTER TABLE operations ADD COLUMN timeline_removed_at TIMESTAMPTZ;

CREATE INDEX operations_kept_timelines ON operations (finished_at) WHERE finished_at IS NOT NULL AND timeline_removed_at IS NULL;

-- +goose Down
DROP INDEX operations_kept_timelines;

ALTER TABLE operations DROP COLUMN timeline_removed_at;
ALTER TABLE timeline DROP COLUMN first_attempt;
