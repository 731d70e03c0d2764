package storagetest

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
)

// Insertions are what a store of instances makes.
type Insertions interface {
	Insertion(instance environment.Instance) (storage.Statement, error)
}

// Insert adds an instance without an operation.
func Insert(ctx context.Context, tx storage.Tx, store Insertions, instance environment.Instance) error {
	insertion, err := store.Insertion(instance)
	if err != nil {
		return err
	}

	return storage.Apply(ctx, tx, insertion)
}
