-- +goose Up
-- The original IDs if they cannot be labels, otherwise empty. If set, the columns tenant and subaccount contain the labels.
ALTER TABLE runtimes ADD COLUMN original_tenant TEXT NOT NULL DEFAULT '';
ALTER TABLE runtimes ADD COLUMN original_subaccount TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE runtimes DROP COLUMN original_subaccount;
ALTER TABLE runtimes DROP COLUMN original_tenant;
