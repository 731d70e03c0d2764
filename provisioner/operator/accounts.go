package operator

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/labels/tenancy"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// accounts implements operatorserver.Accounts. The Provisioner's accounts are its tenants.
type accounts struct{ runtimes *runtimes.Store }

// Key returns the label for the account's ID. The rows of runtimes contain this label.
func (accounts) Key(account string) string { return tenancy.Label(account) }

// Remaining returns at most limit runtimes of the account that are not deleted.
func (a accounts) Remaining(ctx context.Context, tx storage.Tx, account string, limit int) ([]operatorapi.AccountInstance, error) {
	found, err := a.runtimes.OfTenant(ctx, tx, tenancy.Label(account), limit)
	remaining := make([]operatorapi.AccountInstance, 0, len(found))

	for _, runtime := range found {
		remaining = append(remaining, operatorapi.AccountInstance{
			InstanceID: runtime.ID, Name: runtime.ShootName, GlobalAccountID: runtime.Tenant,
		})
	}

	return remaining, err
}

// CountErasable returns the number of the account's deleted runtimes.
func (a accounts) CountErasable(ctx context.Context, account string) (operatorserver.ErasableRows, error) {
	count, err := a.runtimes.CountDeleted(ctx, tenancy.Label(account))

	return operatorserver.ErasableRows{Runtimes: count}, err
}

// Erase removes at most limit rows of the account's deleted runtimes. Such a row still contains the runtime's configuration.
func (a accounts) Erase(ctx context.Context, tx storage.Tx, account string, limit int) (operatorserver.ErasableRows, error) {
	count, err := a.runtimes.EraseDeleted(ctx, tx, tenancy.Label(account), limit)

	return operatorserver.ErasableRows{Runtimes: count}, err
}
