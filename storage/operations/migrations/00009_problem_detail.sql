-- +goose Up
-- What another system reported about the problem, for operators. Earlier versions wrote it to problem_message, which users read.
ALTER TABLE operations ADD COLUMN problem_detail TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE operations DROP COLUMN problem_detail;
