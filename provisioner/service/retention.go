package service

import (
	"context"

	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// NewRemoval returns the retention rules for the Provisioner's operations. The row of a deleted runtime is removed with its last
// operation.
func NewRemoval(store *runtimes.Store) operations.Removal {
	ending := []string{operation.KindDeprovision, operation.KindDeprovisionNoInstall}

	return operations.Removal{
		Subjects: func(ctx context.Context, tx storage.Tx, keys []string) (map[string]operations.Subject, error) {
			present, err := store.Present(ctx, tx, keys)

			subjects := map[string]operations.Subject{}
			for _, key := range keys {
				subjects[key] = operations.Gone
			}

			for _, id := range present {
				subjects[id] = operations.Present
			}

			return subjects, err
		},
		Named: store.UnreportedAmong, Removed: store.Forget,
		Lasting: []string{operation.KindProvision, operation.KindProvisionNoInstall}, Ending: ending, Latest: [][]string{ending},
	}
}
