package accounts

import (
	"context"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/storage"
)

// cleanupRow is a row of account_cleanups.
type cleanupRow struct {
	Account    string       `db:"account"`
	Type       string       `db:"account_type"`
	DirtySince storage.Time `db:"dirty_since"`
	Attempts   int          `db:"attempts"`
	State      string       `db:"state"`
	Message    string       `db:"message"`
	NextRunAt  storage.Time `db:"next_run_at"`
}

// Track implements accountpool.Cleanups.
func (s *Store) Track(ctx context.Context, dirty []accountpool.Account, now time.Time) error {
	known, err := s.Cleanups(ctx)
	if err != nil {
		return err
	}

	for _, account := range dirty {
		if slices.ContainsFunc(known, func(each accountpool.Cleanup) bool { return each.Account == account.Name }) {
			continue
		}

		if _, err := storage.Exec(ctx, s.db.Writer(), `INSERT INTO account_cleanups
			(account, account_type, dirty_since, attempts, state, message, next_run_at) VALUES (?, ?, ?, 0, '', '', ?)
			ON CONFLICT (account) DO NOTHING`, account.Name, account.Type, storage.At(now), storage.At(now)); err != nil {
			return explain(err, "recording a dirty account")
		}
	}

	for _, each := range known {
		if slices.ContainsFunc(dirty, func(account accountpool.Account) bool { return account.Name == each.Account }) {
			continue
		}

		if _, err := storage.Exec(ctx, s.db.Writer(), `DELETE FROM account_cleanups WHERE account = ?`, each.Account); err != nil {
			return explain(err, "removing the record of a dirty account")
		}
	}

	return nil
}

// Cleanups implements accountpool.Cleanups.
func (s *Store) Cleanups(ctx context.Context) ([]accountpool.Cleanup, error) {
	rows, err := storage.Select[cleanupRow](ctx, s.db.Writer(), `SELECT account, account_type, dirty_since, attempts, state, message, next_run_at
		FROM account_cleanups ORDER BY next_run_at, account`)
	found := make([]accountpool.Cleanup, 0, len(rows))

	for _, row := range rows {
		found = append(found, accountpool.Cleanup{
			Account: row.Account, Type: row.Type, DirtySince: row.DirtySince.Time, Attempts: row.Attempts,
			State: accountpool.CleanupState(row.State), Message: row.Message, NextAt: row.NextRunAt.Time,
		})
	}

	return found, explain(err, "listing the dirty accounts")
}

// Answered implements accountpool.Cleanups.
func (s *Store) Answered(ctx context.Context, cleanup accountpool.Cleanup) error {
	_, err := storage.Exec(ctx, s.db.Writer(), `UPDATE account_cleanups SET attempts = ?, state = ?, message = ?, next_run_at = ? WHERE account = ?`,
		cleanup.Attempts, string(cleanup.State), cleanup.Message, storage.At(cleanup.NextAt), cleanup.Account)

	return explain(err, "recording a cleanup")
}
