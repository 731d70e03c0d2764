-- +goose Up
-- The right of a tenant to one account of a type. The account is empty until one is found. A claim that is being released has no
-- uses except that of the instance that releases it.
CREATE TABLE account_claims (
    tenant       TEXT        NOT NULL,
    account_type TEXT        NOT NULL,
    eu_access    BOOLEAN     NOT NULL,
    account      TEXT        NOT NULL,
    releasing    BOOLEAN     NOT NULL,
    changed_at   TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant, account_type, eu_access)
);

-- No account has two tenants.
CREATE UNIQUE INDEX account_claims_account ON account_claims (account) WHERE account <> '';

CREATE INDEX account_claims_type ON account_claims (account_type);

-- The account that an instance uses: that of the claim with the same key, or a shared account, whose name is in the row.
CREATE TABLE account_uses (
    id           TEXT        PRIMARY KEY,
    tenant       TEXT        NOT NULL,
    account_type TEXT        NOT NULL,
    eu_access    BOOLEAN     NOT NULL,
    shared       BOOLEAN     NOT NULL,
    account      TEXT        NOT NULL,
    assigned_at  TIMESTAMPTZ NOT NULL
);

CREATE INDEX account_uses_claim ON account_uses (tenant, account_type, eu_access);
CREATE INDEX account_uses_shared ON account_uses (account) WHERE shared;

-- +goose Down
DROP TABLE account_uses;
DROP TABLE account_claims;
