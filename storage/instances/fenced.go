package instances

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// sameInstance selects the instance on which an operation works. It also compares the Shoot name: a new instance may reuse the ID
// of a deleted one, but never its Shoot name.
const sameInstance = ` WHERE id = ? AND shoot_name = ?`

// SetRuntime records the runtime that an operation has ordered for an instance, both in the column and in the sealed part of the
// row. It also records the runtime's Kyma version and which system installs Kyma. It changes nothing and returns no error if the
// instance is gone, if another instance now has its ID, or if the operation has lost its lease.
func (s *Store) SetRuntime(ctx context.Context, by process.Record, instance environment.Instance, runtimeID string) error {
	err := s.db.InTx(ctx, func(tx storage.Tx) error {
		held, err := storage.Select[row](ctx, tx, `SELECT `+columns+`, request FROM instances`+sameInstance+s.db.ForUpdate(),
			instance.ID, instance.ShootName)
		if err != nil || len(held) == 0 {
			return err
		}

		present, err := s.instance(held[0])
		if err != nil {
			return err
		}

		present.RuntimeID = runtimeID

		if chosen := instance.Request.Cluster.Kyma; chosen != nil && present.Request.Cluster.Kyma != nil {
			present.Request.Cluster.Kyma.Version, present.Request.Cluster.Kyma.Installer = chosen.Version, chosen.Installer
		}

		request, err := s.sealed(present)
		if err != nil {
			return err
		}

		_, err = storage.Exec(ctx, tx, `UPDATE instances SET runtime_id = ?, request = ?`+sameInstance+` AND `+operations.HasLease,
			runtimeID, request, instance.ID, instance.ShootName, by.ID, by.Lease.Fence, by.Lease.Owner)

		return err
	})

	return failure.While(err, "recording the runtime of instance %s", instance.ID)
}

// SetDashboardURL records the address of an instance's console. It changes nothing and returns no error in the same cases as SetRuntime.
func (s *Store) SetDashboardURL(ctx context.Context, by process.Record, instance environment.Instance, address string) error {
	err := s.db.InTx(ctx, func(tx storage.Tx) error {
		_, err := storage.Exec(ctx, tx, `UPDATE instances SET dashboard_url = ?`+sameInstance+` AND `+operations.HasLease,
			address, instance.ID, instance.ShootName, by.ID, by.Lease.Fence, by.Lease.Owner)

		return err
	})

	return failure.While(err, "recording the dashboard of instance %s", instance.ID)
}

// Delete removes an instance with its bindings, in the transaction that ends the operation. It changes nothing, and returns no
// error, if the instance is gone or if another instance now has its ID. The operations of the instance stay as its history.
func (s *Store) Delete(ctx context.Context, tx storage.Tx, instance environment.Instance) error {
	_, err := storage.Exec(ctx, tx, `DELETE FROM instances`+sameInstance, instance.ID, instance.ShootName)

	return failure.While(err, "removing instance %s", instance.ID)
}

// Hold locks an instance until the caller's transaction ends, like Touch, and returns it, so that the caller can change it with
// Update. It returns storage.ErrNotFound if the instance no longer exists, or if another instance now has its ID.
func (s *Store) Hold(ctx context.Context, tx storage.Tx, instance environment.Instance, now time.Time) (environment.Instance, error) {
	locked, err := storage.Exec(ctx, tx, `UPDATE instances SET updated_at = ?`+sameInstance, storage.At(now), instance.ID, instance.ShootName)
	if err == nil && locked == 0 {
		err = storage.ErrNotFound
	}

	if err != nil {
		return environment.Instance{}, fmt.Errorf("touching instance %s: %w", instance.ID, err)
	}

	return s.Get(ctx, tx, instance.ID)
}
