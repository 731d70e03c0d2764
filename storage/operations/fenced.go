package operations

import (
	"context"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// HasLease is the SQL condition for a step's writes to other tables. It is true if the step's operation still has the lease under
// which the step started. The parameters are the operation's ID, the fence, and the owner of the lease.
const HasLease = `EXISTS (SELECT 1 FROM operations WHERE operations.id = ? AND operations.fence = ? AND operations.lease_owner = ?)`

// Fenced executes a step's writes to other tables if the step's operation still has the lease under which the step started.
// Otherwise it returns process.ErrLeaseLost, and the step must not make the call for which the statements store an intent. Fenced
// locks the operation while it executes the statements, so that no other replica can take the lease. Each statement must be
// written so that it changes rows only if the table `first` has a row, see storage.DB.ExecCTE.
func Fenced(ctx context.Context, db *storage.DB, by process.Record, statements ...storage.Statement) error {
	_, held, err := db.ExecCTE(ctx, storage.Statement{
		Text: `SELECT id FROM operations WHERE id = ? AND fence = ? AND lease_owner = ?` + db.ForUpdate(),
		Args: []any{by.ID, by.Lease.Fence, by.Lease.Owner},
	}, statements...)
	if err == nil && !held {
		err = process.ErrLeaseLost
	}

	return err
}
