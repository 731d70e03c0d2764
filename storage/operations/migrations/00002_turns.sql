-- +goose Up
-- Pending operations of a kind take turns by tenant. turn is the position of an operation in this order.
ALTER TABLE operations ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN turn BIGINT NOT NULL DEFAULT 0;
-- The message of a waiting step. A failing step has a problem instead.
ALTER TABLE operations ADD COLUMN progress TEXT NOT NULL DEFAULT '';
-- The step that an operator asks to skip, and the reason.
ALTER TABLE operations ADD COLUMN skip_step TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN skip_reason TEXT NOT NULL DEFAULT '';

DROP INDEX operations_due;
CREATE INDEX operations_due ON operations (kind, next_run_at) WHERE state IN ('in progress', 'canceling');
CREATE INDEX operations_pending ON operations (kind, turn, created_at) WHERE state = 'pending';
CREATE INDEX operations_turns ON operations (tenant, kind, turn) WHERE state = 'pending';

-- +goose Down
DROP INDEX operations_turns;
DROP INDEX operations_pending;
DROP INDEX operations_due;
CREATE INDEX operations_due ON operations (next_run_at) WHERE state IN ('pending', 'in progress', 'canceling');

ALTER TABLE operations DROP COLUMN skip_reason;
ALTER TABLE operations DROP COLUMN skip_step;
ALTER TABLE operations DROP COLUMN progress;
ALTER TABLE operations DROP COLUMN turn;
ALTER TABLE operations DROP COLUMN tenant;
