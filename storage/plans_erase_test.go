package storage_test

import (
	"context"
	"net/http"

	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// eraseCalls returns calls to all methods that find, count and erase an account's rows, both for an account with rows and for an
// account without rows.
func (s stores) eraseCalls() map[string]call {
	erase := func(id string, erase func(ctx context.Context, tx storage.Tx) error) call {
		return s.inTx(func(ctx context.Context, tx storage.Tx) error {
			if err := s.auditlog.Insert(ctx, tx, auditlog.Entry{
				ID: id, Action: auditlog.ActionErase, Account: "account-500", Status: http.StatusOK, At: filledAt,
			}); err != nil {
				return err
			}

			return erase(ctx, tx)
		})
	}

	calls := map[string]call{
		"auditlog.Erase": erase("first", func(ctx context.Context, tx storage.Tx) error {
			return s.auditlog.Erase(ctx, tx, []string{"e3", "e6"}, "first")
		}),
		"operations.Erase": erase("second", func(ctx context.Context, tx storage.Tx) error {
			return s.operations.Erase(ctx, tx, []string{"p500", "p2500"}, "second", filledAt)
		}),
		"operations.EraseTimelines": s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.operations.EraseTimelines(ctx, tx, []string{"p10", "p11"})

			return err
		}),
	}

	for name, account := range map[string]string{"of an account": "account-10", "of no account": "none"} {
		calls["auditlog.Erasable "+name] = s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.auditlog.Erasable(ctx, tx, account, page)

			return err
		})
		calls["auditlog.CountErasable "+name] = func(ctx context.Context) error {
			_, err := s.auditlog.CountErasable(ctx, account)

			return err
		}
		calls["auditlog.Erased "+name] = func(ctx context.Context) error {
			_, err := s.auditlog.Erased(ctx, s.db.Reader(), account)

			return err
		}
		calls["operations.Erasable "+name] = s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.operations.Erasable(ctx, tx, account, page)

			return err
		})
		calls["operations.CountErasable "+name] = func(ctx context.Context) error {
			_, err := s.operations.CountErasable(ctx, account)

			return err
		}
		calls["operations.Unfinished "+name] = func(ctx context.Context) error {
			_, err := s.operations.Unfinished(ctx, s.db.Reader(), account, page)

			return err
		}
		calls["instances.OfAccount "+name] = func(ctx context.Context) error {
			_, err := s.instances.OfAccount(ctx, s.db.Reader(), account, page)

			return err
		}
		calls["runtimes.OfTenant "+name] = func(ctx context.Context) error {
			_, err := s.runtimes.OfTenant(ctx, s.db.Reader(), account, page)

			return err
		}
		calls["runtimes.CountDeleted "+name] = func(ctx context.Context) error {
			_, err := s.runtimes.CountDeleted(ctx, account)

			return err
		}
		calls["runtimes.EraseDeleted "+name] = s.inTx(func(ctx context.Context, tx storage.Tx) error {
			_, err := s.runtimes.EraseDeleted(ctx, tx, account, page)

			return err
		})
	}

	return calls
}
