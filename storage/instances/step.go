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

// known selects the instance that a step knows, while its operation is under the lease with which the step was begun. An id may be used
// again, the name of a Shoot is not.
const known = ` WHERE id = ? AND shoot_name = ? AND ` + operations.Held

// knownTo completes the parameters of a statement that ends with known.
func knownTo(by process.Record, instance environment.Instance, args ...any) []any {
	return append(args, instance.ID, instance.ShootName, by.ID, by.Lease.Fence, by.Lease.Owner)
}

// SetRuntime records the runtime that an operation has ordered for an instance. When the instance is gone, its id was given to another
// one since, or the operation's lease was lost, nothing is changed.
func (s *Store) SetRuntime(ctx context.Context, by process.Record, instance environment.Instance, runtimeID string) error {
	if _, err := storage.Exec(ctx, s.db.Writer(), `UPDATE instances SET runtime_id = ?`+known, knownTo(by, instance, runtimeID)...); err != nil {
		return fmt.Errorf("recording the runtime of instance %s: %w", instance.ID, err)
	}

	return nil
}

// Delete removes an instance. When it is gone, its id was given to another one since, or the operation's lease was lost, nothing is
// changed.
func (s *Store) Delete(ctx context.Context, by process.Record, instance environment.Instance) error {
	if _, err := storage.Exec(ctx, s.db.Writer(), `DELETE FROM instances`+known, knownTo(by, instance)...); err != nil {
		return fmt.Errorf("removing instance %s: %w", instance.ID, err)
	}

	return nil
}

// Hold touches an instance inside the caller's transaction, as Touch does, and returns it as it is then, for a step that changes it by
// Update. It returns storage.ErrNotFound when the instance is gone, its id was given to another one since, or the operation's lease was lost.
func (s *Store) Hold(ctx context.Context, tx storage.Tx, by process.Record, instance environment.Instance, now time.Time,
) (environment.Instance, error) {
	if _, err := storage.Exec(ctx, tx, `UPDATE instances SET updated_at = ?`+known, knownTo(by, instance, storage.At(now))...); err != nil {
		return environment.Instance{}, fmt.Errorf("touching instance %s: %w", instance.ID, err)
	}

	// The touch may have waited for somebody else's transaction. Only a statement that begins after it sees what came of the lease meanwhile.
	row, err := storage.Get[row](ctx, tx, `SELECT `+columns+`, request FROM instances`+known, knownTo(by, instance)...)
	if err != nil {
		return environment.Instance{}, fmt.Errorf("reading instance %s: %w", instance.ID, err)
	}

	return s.instance(row)
}
