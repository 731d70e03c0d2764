-- +goose Up
-- Retention removes the keys of an operation together with the operation.
CREATE INDEX idempotency_keys_operation ON idempotency_keys (operation_id);

-- +goose Down
DROP INDEX idempotency_keys_operation;
