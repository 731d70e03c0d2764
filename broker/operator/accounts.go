package operator

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
)

// accounts implements operatorserver.Accounts. In the broker, the row of an instance is deleted together with the instance,
// so an account has nothing to erase except operations and audit log entries, which both services have.
type accounts struct{ instances *instances.Store }

// Key returns the ID itself.
func (accounts) Key(account string) string { return account }

// Remaining returns at most limit instances: those of the account, and those that it ordered and that later moved to another
// account.
func (a accounts) Remaining(ctx context.Context, tx storage.Tx, account string, limit int) ([]operatorapi.AccountInstance, error) {
	found, err := a.instances.OfAccount(ctx, tx, account, limit)
	remaining := make([]operatorapi.AccountInstance, 0, len(found))

	for _, instance := range found {
		remaining = append(remaining, operatorapi.AccountInstance{
			InstanceID: instance.ID, Name: instance.Name, GlobalAccountID: instance.GlobalAccountID,
		})
	}

	return remaining, err
}

// CountErasable returns 0.
func (accounts) CountErasable(context.Context, string) (int, error) { return 0, nil }

// Erase does nothing and returns 0.
func (accounts) Erase(context.Context, storage.Tx, string, int) (int, error) { return 0, nil }
