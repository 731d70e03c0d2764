package bindings

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// status lists all columns except the sealed credentials.
const status = `bindings.id, bindings.instance_id, bindings.binding_id, bindings.runtime_id, bindings.role, bindings.lifetime,
	bindings.predecessor, bindings.app_guid, bindings.created_by, bindings.state, bindings.operation_id, bindings.created_at,
	bindings.expires_at`

// Get returns the newest binding with the binding ID that the platform has chosen, including its credentials. It prefers a binding
// that is not being removed. If there is none, the error is storage.ErrNotFound.
func (s *Store) Get(ctx context.Context, tx storage.Tx, instanceID, bindingID string) (environment.Binding, error) {
	row, err := storage.Get[row](ctx, tx, `SELECT `+status+`, bindings.access FROM bindings
		WHERE instance_id = ? AND binding_id = ? ORDER BY state = 'deleting', created_at DESC LIMIT 1`, instanceID, bindingID)
	if err != nil {
		return environment.Binding{}, fmt.Errorf("reading binding %s of instance %s: %w", bindingID, instanceID, err)
	}

	binding := row.binding()
	binding.Access, err = s.open(binding, row.Access)

	return binding, err
}

// Newest is like Get, but does not decrypt the credentials and omits them.
func (s *Store) Newest(ctx context.Context, tx storage.Tx, instanceID, bindingID string) (environment.Binding, error) {
	row, err := storage.Get[row](ctx, tx, `SELECT `+status+` FROM bindings
		WHERE instance_id = ? AND binding_id = ? ORDER BY state = 'deleting', created_at DESC LIMIT 1`, instanceID, bindingID)

	return row.binding(), failure.While(err, "reading binding %s of instance %s", bindingID, instanceID)
}

// Creations returns the IDs of the operations that are creating bindings of the instance.
func (s *Store) Creations(ctx context.Context, tx storage.Tx, instanceID string) ([]string, error) {
	operations, err := storage.Select[string](ctx, tx, `SELECT operation_id FROM bindings WHERE instance_id = ? AND state = 'creating'`, instanceID)

	return operations, failure.While(err, "finding unfinished bindings of instance %s", instanceID)
}

// Keys returns the keys of all bindings of the given instances, see environment.BindingKey.
func (s *Store) Keys(ctx context.Context, tx storage.Tx, instanceIDs []string) ([]string, error) {
	if len(instanceIDs) == 0 {
		return nil, nil
	}

	rows, err := storage.Select[struct {
		InstanceID string `db:"instance_id"`
		BindingID  string `db:"binding_id"`
	}](ctx, tx, `SELECT instance_id, binding_id FROM bindings WHERE instance_id IN (?)`, instanceIDs)

	keys := make([]string, 0, len(rows))
	for _, row := range rows {
		keys = append(keys, environment.BindingKey(row.InstanceID, row.BindingID))
	}

	return keys, failure.While(err, "finding bindings")
}

// Wanted reports whether the binding exists and is not being removed.
func (s *Store) Wanted(ctx context.Context, id string) (bool, error) {
	found, err := storage.Select[int](ctx, s.db.Reader(), `SELECT 1 FROM bindings WHERE id = ? AND state <> 'deleting'`, id)

	return len(found) > 0, failure.While(err, "finding binding %s", id)
}

// CountLive returns how many of the instance's bindings for the given runtime have not expired and are not being removed. It
// includes bindings whose creation has failed.
func (s *Store) CountLive(ctx context.Context, tx storage.Tx, instanceID, runtimeID string, now time.Time) (int, error) {
	count, err := storage.Get[int](ctx, tx, `SELECT count(*) FROM bindings
		WHERE instance_id = ? AND runtime_id = ? AND expires_at > ? AND state <> 'deleting'`, instanceID, runtimeID, storage.At(now))

	return count, failure.While(err, "counting the bindings of instance %s", instanceID)
}

// OfInstance returns all bindings of an instance without their credentials, newest first.
func (s *Store) OfInstance(ctx context.Context, instanceID string) ([]environment.Binding, error) {
	return s.list(ctx, `SELECT `+status+` FROM bindings WHERE instance_id = ? ORDER BY created_at DESC, id DESC`, instanceID)
}

// Removable returns at most limit bindings that must be removed: expired bindings, and bindings whose creation failed, unless an
// operation on the binding is unfinished. It excludes bindings whose removal failed at or after failedBefore, so that a failed
// removal is not retried immediately.
func (s *Store) Removable(ctx context.Context, now, failedBefore time.Time, limit int) ([]environment.Binding, error) {
	return s.list(ctx, `SELECT `+status+` FROM bindings JOIN operations ON operations.id = bindings.operation_id
		WHERE bindings.expires_at <= ? AND operations.finished_at IS NOT NULL
			AND (bindings.state <> 'deleting' OR operations.finished_at < ?)
		UNION
		SELECT `+status+` FROM bindings JOIN operations ON operations.id = bindings.operation_id
		WHERE bindings.state = 'creating' AND operations.finished_at IS NOT NULL `+storage.Page(limit, 0), storage.At(now), storage.At(failedBefore))
}

func (s *Store) list(ctx context.Context, query string, args ...any) ([]environment.Binding, error) {
	rows, err := storage.Select[row](ctx, s.db.Reader(), query, args...)
	if err != nil {
		return nil, fmt.Errorf("listing bindings: %w", err)
	}

	bindings := make([]environment.Binding, 0, len(rows))
	for _, row := range rows {
		bindings = append(bindings, row.binding())
	}

	return bindings, nil
}

// binding converts the row to a Binding without the sealed access.
func (row row) binding() environment.Binding {
	binding := row.Binding
	binding.Lifetime = time.Duration(row.Lifetime) * time.Second
	binding.CreatedAt, binding.ExpiresAt = row.CreatedAt.Time, row.ExpiresAt.Time

	return binding
}
