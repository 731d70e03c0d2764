package upgrade

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// checkRollback returns an error of kind Invalid if the upgrade of Kyma cannot be rolled back. past lists all operations of the
// instance, newest first. checkRollback decrypts the data of the operations that may have changed Kyma after the upgrade.
//
// The Provisioner rolls back the last order that changed Kyma. The upgrade must therefore be the last change, and must have
// succeeded: a failed upgrade may never have reached the Provisioner, which would then roll back an earlier order.
func (u Upgrader) checkRollback(ctx context.Context, tx storage.Tx, instance environment.Instance, past []process.Record, operationID string) error {
	if !instance.Request.Cluster.Kyma.InstalledBy(environment.InstallerProvisioner) {
		return failure.New(failure.Invalid, "The instance's Kyma was not installed by the Provisioner. Only the Provisioner can roll Kyma back.")
	}

	for _, operation := range past {
		if operation.ID == operationID {
			return rollbackTarget(operation)
		}

		if err := u.allowsRollback(ctx, tx, operation, operationID); err != nil {
			return err
		}
	}

	return failure.New(failure.Invalid, "Nothing can be rolled back: the instance has no operation %s, or the operation was removed after its retention period.", operationID)
}

// rollbackTarget checks whether the operation can be rolled back: it must be a successful upgrade of Kyma.
func rollbackTarget(operation process.Record) error {
	if operation.Kind != environment.KindUpgradeKyma || operation.State != process.Succeeded {
		return failure.New(failure.Invalid, "Operation %s is not a successful upgrade of Kyma.", operation.ID)
	}

	return nil
}

// allowsRollback returns an error if the given operation, which is newer than the upgrade, prevents the rollback. An operation
// that never started, or that failed because it would have started too late, does not prevent the rollback, because it has changed
// nothing.
func (u Upgrader) allowsRollback(ctx context.Context, tx storage.Tx, operation process.Record, operationID string) error {
	switch {
	case operation.NeverStarted(), operation.State == process.Failed && operation.Problem.Reason == failure.ReasonNotStarted:
		return nil
	case operation.Kind == environment.KindUpgradeKyma, operation.Kind == environment.KindUpdate:
	case operation.Kind == environment.KindSuspend, operation.Kind == environment.KindResume, operation.Kind == environment.KindProvision,
		operation.Kind == environment.KindDeprovision:
		return failure.New(failure.Invalid, "The runtime has since been removed or recreated by operation %s.", operation.ID)
	default:
		return nil
	}

	data, err := u.data(ctx, tx, operation.ID)
	if err != nil {
		return err
	}

	upgrade := data.Upgrade

	switch {
	case operation.Kind == environment.KindUpdate && !changesKyma(data):
		return nil
	case operation.Kind == environment.KindUpdate:
		return failure.New(failure.Invalid, "The modules or the credentials of Kyma have since been changed by operation %s.", operation.ID)
	case changesNothing(upgrade):
		return nil
	case upgrade.RollsBack == operationID && operation.State == process.Succeeded:
		return failure.New(failure.Invalid, "The upgrade has already been rolled back by operation %s.", operation.ID)
	case upgrade.RollsBack == operationID:
		return nil // a failed rollback can be repeated
	default:
		return failure.New(failure.Invalid, "Kyma has since been upgraded again by operation %s.", operation.ID)
	}
}

// changesKyma reports whether an update changes the runtime's Kyma configuration or its Service Manager credentials.
func changesKyma(data environment.Data) bool {
	if data.Update == nil {
		return false
	}

	before, after := data.Instance.Request.Cluster, data.Update.Cluster

	return !reflect.DeepEqual(before.Kyma, after.Kyma) || !reflect.DeepEqual(before.ServiceManager, after.ServiceManager)
}

// data returns the decrypted data of an operation.
func (u Upgrader) data(ctx context.Context, tx storage.Tx, operationID string) (data environment.Data, err error) {
	payload, err := u.Operations.Payload(ctx, tx, operationID)
	if err != nil {
		return data, err
	}

	err = json.Unmarshal(payload, &data)

	return data, failure.While(err, "reading the data of operation %s", operationID)
}

// MayHaveChanged reports whether an upgrade may have changed its runtime, because it was neither a dry run nor preempted by a
// removal of the runtime. If the operation's data cannot be decrypted, the result is true.
func (u Upgrader) MayHaveChanged(ctx context.Context, tx storage.Tx, operationID string) (bool, error) {
	data, err := u.data(ctx, tx, operationID)
	if errors.Is(err, operations.ErrSealed) {
		return true, nil
	}

	return !changesNothing(data.Upgrade), err
}

// changesNothing reports whether the upgrade leaves its runtime unchanged, because it is nil, a dry run, or preempted by a
// removal of the runtime.
func changesNothing(upgrade *environment.Upgrade) bool {
	return upgrade == nil || upgrade.DryRun || upgrade.Preempted
}

// PreviewRollback returns the versions before and after the rollback of an upgrade. If the upgrade cannot be rolled back, the
// error is of kind Invalid and says why.
func (u Upgrader) PreviewRollback(ctx context.Context, tx storage.Tx, instance environment.Instance, past []process.Record, operationID string,
) (Versions, error) {
	_, accepted, err := u.resolveRollback(ctx, tx, instance, past, Order{RollsBack: operationID})

	return accepted.Versions, err
}

// resolveRollback returns the rollback of the upgrade with the ID order.RollsBack, and the versions for the response.
func (u Upgrader) resolveRollback(ctx context.Context, tx storage.Tx, instance environment.Instance, past []process.Record, order Order,
) (environment.Upgrade, Accepted, error) {
	if err := u.checkRollback(ctx, tx, instance, past, order.RollsBack); err != nil {
		return environment.Upgrade{}, Accepted{}, err
	}

	upgraded, err := u.data(ctx, tx, order.RollsBack)
	if err != nil {
		return environment.Upgrade{}, Accepted{}, err
	}

	former := upgraded.Instance.Request.Cluster.Kyma
	if former == nil || changesNothing(upgraded.Upgrade) || upgraded.Upgrade.RollsBack != "" {
		return environment.Upgrade{}, Accepted{}, failure.New(failure.Invalid, "Operation %s did not upgrade Kyma.", order.RollsBack)
	}

	return environment.Upgrade{Version: former.Version, RollsBack: order.RollsBack, Former: former},
		Accepted{Versions: Versions{From: instance.Request.Cluster.Kyma.Version, To: former.Version}}, nil
}
