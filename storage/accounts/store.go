package accounts

import (
	"context"
	"embed"
	"errors"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Store implements accountpool.Claims and accountpool.Cleanups. Its methods may be called from any goroutine.
type Store struct {
	db    *storage.DB
	clock clock.PassiveClock
}

// Open migrates the tables and returns the store. The instances table must exist.
func Open(ctx context.Context, db *storage.DB, clock clock.PassiveClock) (*Store, error) {
	if err := db.Migrate(ctx, "accounts", migrations, "migrations"); err != nil {
		return nil, err
	}

	return &Store{db: db, clock: clock}, nil
}

// keyed is the SQL condition that selects rows with the key of a claim. keyArgs returns the arguments of the condition.
const keyed = `tenant = ? AND account_type = ? AND eu_access = ?`

func keyArgs(key accountpool.Key) []any { return []any{key.Tenant, key.Type, key.EUAccess} }

// claimRow is a row of account_claims.
type claimRow struct {
	Tenant    string `db:"tenant"`
	Type      string `db:"account_type"`
	EUAccess  bool   `db:"eu_access"`
	Account   string `db:"account"`
	Releasing bool   `db:"releasing"`
}

func (r claimRow) claim() accountpool.Claim {
	return accountpool.Claim{
		Key:     accountpool.Key{Tenant: r.Tenant, Type: r.Type, EUAccess: r.EUAccess},
		Account: r.Account, Releasing: r.Releasing,
	}
}

const claimColumns = `tenant, account_type, eu_access, account, releasing`

// useRow is a row of account_uses. If the account is not shared, Account comes from the claim with the same key.
type useRow struct {
	ID       string `db:"id"`
	Tenant   string `db:"tenant"`
	Type     string `db:"account_type"`
	EUAccess bool   `db:"eu_access"`
	Shared   bool   `db:"shared"`
	Account  string `db:"account"`
}

func (r useRow) use() accountpool.Use {
	return accountpool.Use{
		InstanceID: r.ID, Key: accountpool.Key{Tenant: r.Tenant, Type: r.Type, EUAccess: r.EUAccess},
		Shared: r.Shared, Account: r.Account,
	}
}

// selectUses selects the columns of useRow.
const selectUses = `SELECT uses.id, uses.tenant, uses.account_type, uses.eu_access, uses.shared,
	CASE WHEN uses.shared THEN uses.account ELSE COALESCE(claims.account, '') END AS account
	FROM account_uses uses LEFT JOIN account_claims claims
	ON NOT uses.shared AND claims.tenant = uses.tenant AND claims.account_type = uses.account_type AND claims.eu_access = uses.eu_access`

// explain returns err as a transient failure of the broker's database, or nil if err is nil.
func explain(err error, doing string) error {
	if err == nil {
		return nil
	}

	return failure.Wrap(failure.Transient, err, "%s failed because of a database error", doing).
		WithReason(failure.ReasonInternal, failure.ComponentBrokerDatabase)
}

// Use implements accountpool.Claims.
func (s *Store) Use(ctx context.Context, instanceID string) (accountpool.Use, bool, error) {
	row, err := storage.Get[useRow](ctx, s.db.Writer(), selectUses+` WHERE uses.id = ?`, instanceID)
	if errors.Is(err, storage.ErrNotFound) {
		return accountpool.Use{}, false, nil
	}

	return row.use(), err == nil, explain(err, "reading the account of the instance")
}

// Join implements accountpool.Claims.
func (s *Store) Join(ctx context.Context, instanceID string, key accountpool.Key) (accountpool.Claim, error) {
	var claim accountpool.Claim

	err := s.db.InTx(ctx, func(tx storage.Tx) error {
		now := storage.At(s.clock.Now())

		if _, err := storage.Exec(ctx, tx, `INSERT INTO account_claims (`+claimColumns+`, changed_at) VALUES (?, ?, ?, '', ?, ?)
			ON CONFLICT (tenant, account_type, eu_access) DO NOTHING`, append(keyArgs(key), false, now)...); err != nil {
			return err
		}

		row, err := s.lock(ctx, tx, key)
		if err != nil {
			return err
		}

		claim = row.claim()
		if claim.Releasing {
			return nil
		}

		return record(ctx, tx, accountpool.Use{InstanceID: instanceID, Key: key}, now)
	})

	return claim, explain(err, "claiming an account")
}

// record stores which account the instance uses, replacing any earlier record.
func record(ctx context.Context, tx storage.Tx, use accountpool.Use, now storage.Time) error {
	_, err := storage.Exec(ctx, tx, `INSERT INTO account_uses (id, tenant, account_type, eu_access, shared, account, assigned_at)
		VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET tenant = excluded.tenant, account_type = excluded.account_type, eu_access = excluded.eu_access,
		shared = excluded.shared, account = excluded.account, assigned_at = excluded.assigned_at`,
		use.InstanceID, use.Tenant, use.Type, use.EUAccess, use.Shared, use.Account, now)

	return failure.While(err, "recording the account of instance %s", use.InstanceID)
}

// lock reads a claim and locks its row until the transaction ends. If there is no such claim, the error is storage.ErrNotFound.
func (s *Store) lock(ctx context.Context, tx storage.Tx, key accountpool.Key) (claimRow, error) {
	return storage.Get[claimRow](ctx, tx, `SELECT `+claimColumns+` FROM account_claims WHERE `+keyed+s.db.ForUpdate(), keyArgs(key)...)
}

// Holds implements accountpool.Claims.
func (s *Store) Holds(ctx context.Context, instanceID string, claim accountpool.Claim) (bool, error) {
	held, err := storage.Get[int](ctx, s.db.Writer(), `SELECT count(*) FROM account_claims WHERE `+keyed+` AND account = ? AND NOT releasing
		AND EXISTS (SELECT 1 FROM account_uses uses WHERE uses.id = ? AND uses.tenant = account_claims.tenant
		AND uses.account_type = account_claims.account_type AND uses.eu_access = account_claims.eu_access AND NOT uses.shared)`,
		append(keyArgs(claim.Key), claim.Account, instanceID)...)

	return held == 1, explain(err, "checking the claim")
}

// Reserve implements accountpool.Claims.
func (s *Store) Reserve(ctx context.Context, key accountpool.Key, account string) (bool, error) {
	changed, err := storage.Exec(ctx, s.db.Writer(), `UPDATE account_claims SET account = ?, changed_at = ?
		WHERE `+keyed+` AND account = '' AND NOT releasing`, append([]any{account, storage.At(s.clock.Now())}, keyArgs(key)...)...)
	if storage.IsDuplicate(err) {
		return false, nil
	}

	return changed == 1, explain(err, "reserving the account "+account)
}

// Drop implements accountpool.Claims.
func (s *Store) Drop(ctx context.Context, key accountpool.Key, account string) error {
	_, err := storage.Exec(ctx, s.db.Writer(), `UPDATE account_claims SET account = '', changed_at = ? WHERE `+keyed+` AND account = ?`,
		append(append([]any{storage.At(s.clock.Now())}, keyArgs(key)...), account)...)

	return explain(err, "dropping the account "+account)
}

// Reserved implements accountpool.Claims.
func (s *Store) Reserved(ctx context.Context, accountType string) ([]string, error) {
	accounts, err := storage.Select[string](ctx, s.db.Writer(), `SELECT account FROM account_claims WHERE account_type = ? AND account <> ''`, accountType)

	return accounts, explain(err, "listing the claimed accounts")
}

// Share implements accountpool.Claims.
func (s *Store) Share(ctx context.Context, use accountpool.Use) error {
	return explain(record(ctx, s.db.Writer(), use, storage.At(s.clock.Now())), "recording the shared account")
}

// SharedUses implements accountpool.Claims.
func (s *Store) SharedUses(ctx context.Context) (map[string]int, error) {
	rows, err := storage.Select[struct {
		Account string `db:"account"`
		Uses    int    `db:"uses"`
	}](ctx, s.db.Writer(), `SELECT account, count(*) AS uses FROM account_uses WHERE shared GROUP BY account`)
	uses := make(map[string]int, len(rows))

	for _, row := range rows {
		uses[row.Account] = row.Uses
	}

	return uses, explain(err, "counting the uses of shared accounts")
}

// Leave implements accountpool.Claims.
func (s *Store) Leave(ctx context.Context, instanceID string) error {
	return explain(leave(ctx, s.db.Writer(), instanceID), "removing the account of the instance")
}

func leave(ctx context.Context, tx storage.Tx, instanceID string) error {
	_, err := storage.Exec(ctx, tx, `DELETE FROM account_uses WHERE id = ?`, instanceID)

	return failure.While(err, "removing the use of instance %s", instanceID)
}
