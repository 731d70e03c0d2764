package accounts

import (
	"context"
	"errors"

	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// BeginRelease implements accountpool.Claims.
func (s *Store) BeginRelease(ctx context.Context, instanceID string, key accountpool.Key) (accountpool.Claim, bool, error) {
	var (
		claim accountpool.Claim
		last  bool
	)

	err := s.db.InTx(ctx, func(tx storage.Tx) error {
		row, err := s.lock(ctx, tx, key)
		if errors.Is(err, storage.ErrNotFound) {
			return leave(ctx, tx, instanceID)
		}

		if err != nil {
			return err
		}

		others, err := storage.Get[int](ctx, tx, `SELECT count(*) FROM account_uses WHERE `+keyed+` AND NOT shared AND id <> ?`,
			append(keyArgs(key), instanceID)...)
		if err != nil {
			return err
		}

		claim = row.claim()
		if others > 0 {
			return leave(ctx, tx, instanceID)
		}

		claim.Releasing, last = true, true

		_, err = storage.Exec(ctx, tx, `UPDATE account_claims SET releasing = ?, changed_at = ? WHERE `+keyed,
			append([]any{true, storage.At(s.clock.Now())}, keyArgs(key)...)...)

		return failure.While(err, "marking the claim as being released")
	})

	return claim, last, explain(err, "releasing an account")
}

// EndRelease implements accountpool.Claims.
func (s *Store) EndRelease(ctx context.Context, instanceID string, claim accountpool.Claim, keep bool) error {
	err := s.db.InTx(ctx, func(tx storage.Tx) error {
		released := append(keyArgs(claim.Key), claim.Account)

		// Lock the claim before the use, in the same order as all other transactions, to avoid deadlocks.
		statement, args := `DELETE FROM account_claims WHERE `+keyed+` AND account = ? AND releasing`, released
		if keep {
			statement, args = `UPDATE account_claims SET releasing = ?, changed_at = ? WHERE `+keyed+` AND account = ? AND releasing`,
				append([]any{false, storage.At(s.clock.Now())}, released...)
		}

		// Another replica may have ended the release. The use then belongs to a new instance with the same ID.
		if ended, err := storage.Exec(ctx, tx, statement, args...); err != nil || ended == 0 {
			return err
		}

		return leave(ctx, tx, instanceID)
	})

	return explain(err, "releasing an account")
}

// Abandoned implements accountpool.Claims.
func (s *Store) Abandoned(ctx context.Context) (instanceIDs []string, claims []accountpool.Claim, err error) {
	instanceIDs, err = storage.Select[string](ctx, s.db.Writer(), `SELECT id FROM account_uses
		WHERE NOT EXISTS (SELECT 1 FROM instances WHERE instances.id = account_uses.id) ORDER BY id`)
	if err != nil {
		return nil, nil, explain(err, "finding the accounts of deleted instances")
	}

	rows, err := storage.Select[claimRow](ctx, s.db.Writer(), `SELECT `+claimColumns+` FROM account_claims claims
		WHERE NOT EXISTS (SELECT 1 FROM account_uses uses WHERE uses.tenant = claims.tenant AND uses.account_type = claims.account_type
		AND uses.eu_access = claims.eu_access AND NOT uses.shared) ORDER BY tenant, account_type, eu_access`)

	return instanceIDs, claimsOf(rows), explain(err, "finding the claims without an instance")
}

// List implements accountpool.Claims.
func (s *Store) List(ctx context.Context) ([]accountpool.Claim, []accountpool.Use, error) {
	rows, err := storage.Select[claimRow](ctx, s.db.Reader(), `SELECT `+claimColumns+` FROM account_claims ORDER BY tenant, account_type, eu_access`)
	if err != nil {
		return nil, nil, explain(err, "listing the claims")
	}

	uses, err := storage.Select[useRow](ctx, s.db.Reader(), selectUses+` ORDER BY uses.id`)
	listed := make([]accountpool.Use, 0, len(uses))

	for _, row := range uses {
		listed = append(listed, row.use())
	}

	return claimsOf(rows), listed, explain(err, "listing the uses of accounts")
}

func claimsOf(rows []claimRow) []accountpool.Claim {
	claims := make([]accountpool.Claim, 0, len(rows))
	for _, row := range rows {
		claims = append(claims, row.claim())
	}

	return claims
}
