-- +goose Up
-- A line may stand for several attempts that came to the same: from this one on. 0 stands for a line of one attempt.
ALTER TABLE timeline ADD COLUMN first_attempt BIGINT NOT NULL DEFAULT 0;
-- When the timeline was removed because it had grown old.
ALTER TABLE operations ADD COLUMN timeline_removed_at TIMESTAMPTZ;

CREATE INDEX operations_kept_timelines ON operations (finished_at) WHERE finished_at IS NOT NULL AND timeline_removed_at IS NULL;

-- +goose Down
DROP INDEX operations_kept_timelines;

ALTER TABLE operations DROP COLUMN timeline_removed_at;
ALTER TABLE timeline DROP COLUMN first_attempt;
