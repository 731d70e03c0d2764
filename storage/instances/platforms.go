package instances

import (
	"context"
	"fmt"
	"strings"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// ownerColumns lists the columns that determine who may use an instance. If a LEFT JOIN finds no instance, their values are empty
// instead of NULL.
const ownerColumns = `COALESCE(instances.id, '') AS id, COALESCE(platform, '') AS platform, COALESCE(shared_with, '') AS shared_with,
	COALESCE(platform_region, '') AS platform_region, COALESCE(global_account_id, '') AS global_account_id, instances.created_at`

// ownerRow contains the values of ownerColumns. If the instance does not exist, all values are empty.
type ownerRow struct {
	ID              string       `db:"id"`
	Platform        string       `db:"platform"`
	SharedWith      string       `db:"shared_with"`
	PlatformRegion  string       `db:"platform_region"`
	GlobalAccountID string       `db:"global_account_id"`
	CreatedAt       storage.Time `db:"created_at"`
}

func (r ownerRow) instance() environment.Instance {
	return environment.Instance{
		ID: r.ID, Platform: r.Platform, SharedWith: namesIn(r.SharedWith), PlatformRegion: r.PlatformRegion,
		GlobalAccountID: r.GlobalAccountID, CreatedAt: r.CreatedAt.Time,
	}
}

// Owner returns the fields that determine who may use an instance: the platforms, the region, the account and the time of creation.
// The other fields are zero. The error is storage.ErrNotFound if the instance does not exist.
func (s *Store) Owner(ctx context.Context, tx storage.Tx, id string) (environment.Instance, error) {
	found, err := storage.Get[ownerRow](ctx, tx, `SELECT `+ownerColumns+` FROM instances WHERE id = ?`, id)
	if err != nil {
		return environment.Instance{}, fmt.Errorf("reading the owner of instance %s: %w", id, err)
	}

	return found.instance(), nil
}

// Polled returns the data for a poll of last_operation: the operation, and the fields of the instance that Owner reads. If the
// instance does not exist, the ID of the returned instance is empty. The error is storage.ErrNotFound if the operation does not
// exist. This is the broker's most frequent query, so it reads only a few columns of two rows, by their keys.
func (s *Store) Polled(ctx context.Context, tx storage.Tx, instanceID, operationID string) (process.Record, environment.Instance, error) {
	found, err := storage.Get[struct {
		operations.Joined
		ownerRow

		Key       string `db:"instance_id"`
		VisibleTo string `db:"visible_to"`
	}](ctx, tx, `SELECT `+operations.JoinedColumns+`, operations.instance_id, operations.visible_to, `+ownerColumns+`
		FROM operations LEFT JOIN instances ON instances.id = ? WHERE operations.id = ?`, instanceID, operationID)
	if err != nil {
		return process.Record{}, environment.Instance{}, fmt.Errorf("reading operation %s: %w", operationID, err)
	}

	record := found.Record(found.Key)
	record.VisibleTo = found.VisibleTo

	return record, found.instance(), nil
}

// SetPlatforms stores the platforms of an instance. As for Update, the caller must have locked the instance before reading it. The
// caller must also change the unfinished operations of the instance, see operations.Store.SetVisibleTo.
func (s *Store) SetPlatforms(ctx context.Context, tx storage.Tx, instance environment.Instance) error {
	request, err := s.sealed(instance)
	if err != nil {
		return err
	}

	_, err = storage.Exec(ctx, tx, `UPDATE instances SET platform = ?, shared_with = ?, request = ?`+sameInstance,
		instance.Platform, strings.Join(instance.SharedWith, " "), request, instance.ID, instance.ShootName)

	return failure.While(err, "storing the platforms of instance %s", instance.ID)
}
