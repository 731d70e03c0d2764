package reconcile

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
)

// Insert adds the rows of a lost instance, after Restore has decided that it can be restored.
func (c *Comparer) Insert(ctx context.Context, tx storage.Tx, instance environment.Instance) error {
	return c.insert(ctx, tx, instance, nil)
}
