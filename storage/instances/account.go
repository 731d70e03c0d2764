package instances

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// OfAccount returns at most limit instances that the account owns or has ordered, without their requests. An instance may have
// moved to another account since it was ordered, but its runtime still uses the credentials of the account that ordered it.
func (s *Store) OfAccount(ctx context.Context, tx storage.Tx, account string, limit int) ([]environment.Instance, error) {
	rows, err := storage.Select[row](ctx, tx, `SELECT `+columns+` FROM instances WHERE id IN (
		SELECT id FROM instances WHERE global_account_id = ?
		UNION ALL
		SELECT id FROM instances WHERE subscription_account_id = ? AND subscription_account_id <> ''
	) ORDER BY id `+storage.Page(limit, 0), account, account)

	found := make([]environment.Instance, 0, len(rows))
	for _, row := range rows {
		found = append(found, row.instance())
	}

	return found, failure.While(err, "listing the instances of account %s", account)
}

// OfSubaccounts returns the sorted IDs of the instances in the given subaccounts. Pass at most 500 subaccounts.
func (s *Store) OfSubaccounts(ctx context.Context, subaccounts []string) ([]string, error) {
	if len(subaccounts) == 0 {
		return nil, nil
	}

	ids, err := storage.Select[string](ctx, s.db.Reader(), `SELECT id FROM instances WHERE subaccount_id IN (?) ORDER BY id`, subaccounts)

	return ids, failure.While(err, "listing the instances of %d subaccounts", len(subaccounts))
}
