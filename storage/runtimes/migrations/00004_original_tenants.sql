-- +goose Up
-- The IDs of a tenant and subaccount that cannot be labels, beside tenant and subaccount, which hold their labels; else empty.
ALTER TABLE runtimes ADD COLUMN original_tenant TEXT NOT NULL DEFAULT '';
ALTER TABLE runtimes ADD COLUMN original_subaccount TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE runtimes DROP COLUMN original_subaccount;
ALTER TABLE runtimes DROP COLUMN original_tenant;
