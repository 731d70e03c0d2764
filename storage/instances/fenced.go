package instances

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// fenced selects the instance of a step if the operation still has the lease under which the step started. It also compares the
// name of the Shoot, because a new instance may reuse the ID of a deleted one, but never the name of its Shoot.
const fenced = ` WHERE id = ? AND shoot_name = ? AND ` + operations.Held

// fencedArgs appends the arguments of fenced.
func fencedArgs(by process.Record, instance environment.Instance, args ...any) []any {
	return append(args, instance.ID, instance.ShootName, by.ID, by.Lease.Fence, by.Lease.Owner)
}

// SetRuntime records the runtime that an operation has ordered for an instance. It changes nothing and returns no error if the
// instance is gone, if another instance now has its ID, or if the operation has lost its lease.
func (s *Store) SetRuntime(ctx context.Context, by process.Record, instance environment.Instance, runtimeID string) error {
	if _, err := storage.Exec(ctx, s.db.Writer(), `UPDATE instances SET runtime_id = ?`+fenced, fencedArgs(by, instance, runtimeID)...); err != nil {
		return fmt.Errorf("recording the runtime of instance %s: %w", instance.ID, err)
	}

	return nil
}

// Delete removes an instance and its bindings, under the same conditions as SetRuntime. The rows of its operations stay as a
// history.
func (s *Store) Delete(ctx context.Context, by process.Record, instance environment.Instance) error {
	if _, err := storage.Exec(ctx, s.db.Writer(), `DELETE FROM instances`+fenced, fencedArgs(by, instance)...); err != nil {
		return fmt.Errorf("removing instance %s: %w", instance.ID, err)
	}

	return nil
}

// Hold locks an instance for the rest of the caller's transaction, like Touch, and returns it, so that the caller can change it
// with Update. It returns storage.ErrNotFound where SetRuntime would change nothing.
func (s *Store) Hold(ctx context.Context, tx storage.Tx, by process.Record, instance environment.Instance, now time.Time,
) (environment.Instance, error) {
	if _, err := storage.Exec(ctx, tx, `UPDATE instances SET updated_at = ?`+fenced, fencedArgs(by, instance, storage.At(now))...); err != nil {
		return environment.Instance{}, fmt.Errorf("touching instance %s: %w", instance.ID, err)
	}

	// The preceding UPDATE may have waited for another transaction. Only a statement that starts afterwards sees the current
	// lease.
	row, err := storage.Get[row](ctx, tx, `SELECT `+columns+`, request FROM instances`+fenced, fencedArgs(by, instance)...)
	if err != nil {
		return environment.Instance{}, fmt.Errorf("reading instance %s: %w", instance.ID, err)
	}

	return s.instance(row)
}
