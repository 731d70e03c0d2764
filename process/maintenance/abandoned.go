package maintenance

import (
	"context"
	"errors"

	"github.com/environment-broker/environment-broker/internal/clients/avs"
	"github.com/environment-broker/environment-broker/internal/environment"
)

// Page is the maximum number of records that RestoreAbandoned reads at once.
const Page = 100

// Abandoned finds evaluations that failed or canceled upgrades have left in maintenance.
type Abandoned interface {
	// Abandoned returns at most limit records, sorted by instance ID, of the instances whose IDs are greater than after.
	Abandoned(ctx context.Context, after string, limit int) ([]environment.OutsideObject, error)
	// OfInstance returns the instance's objects in all systems.
	OfInstance(ctx context.Context, instanceID string) ([]environment.OutsideObject, error)
	// Drop removes a record, unless another upgrade has started.
	Drop(ctx context.Context, object environment.OutsideObject) error
}

// RestoreAbandoned restores the states of evaluations that upgrades have left in maintenance. After an error it continues with
// the next evaluation, and it returns the joined errors. Any number of replicas can call it at the same time. If another upgrade
// starts during the call, its evaluation may be restored too early, and AvS can send alerts about the upgrade.
func (m Maintenance) RestoreAbandoned(ctx context.Context, abandoned Abandoned) error {
	var failed []error

	for after := ""; ; {
		marks, err := abandoned.Abandoned(ctx, after, Page)
		if err != nil || len(marks) == 0 {
			return errors.Join(append(failed, err)...)
		}

		for _, mark := range marks {
			failed = append(failed, m.restoreAbandoned(ctx, abandoned, mark))
		}

		after = marks[len(marks)-1].InstanceID
	}
}

func (m Maintenance) restoreAbandoned(ctx context.Context, abandoned Abandoned, mark environment.OutsideObject) error {
	objects, err := abandoned.OfInstance(ctx, mark.InstanceID)
	if err != nil {
		return err
	}

	id := ""

	for _, object := range objects {
		if object.System == environment.SystemAvS && environment.KindMaintenance(object.Kind) == mark.Kind {
			id = object.Key
		}
	}

	if err := m.restore(ctx, id, avs.Lifecycle(mark.Key)); err != nil {
		return err
	}

	return abandoned.Drop(ctx, mark)
}
