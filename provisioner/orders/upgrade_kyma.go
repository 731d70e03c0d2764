package orders

import (
	"context"
	"errors"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
	"github.com/environment-broker/environment-broker/storage"
)

// UpgradeRuntime accepts the installation of another version or configuration of Kyma; installation.Upgraded merges the upgrade
// into the current configuration. The operation also stores the replaced Kyma configuration, for a later RollBackUpgrade. The
// error is failure.Invalid if no release provides the new Kyma configuration or if the Kubernetes version is invalid, and
// failure.Conflict if the runtime is hibernated, has no Kyma, or has another operation in progress.
func (s *Service) UpgradeRuntime(ctx context.Context, caller Caller, runtimeID string, upgrade spec.KymaUpgrade,
) (operation.Status, error) {
	kind := operation.KindUpgrade
	if upgrade.ClusterConfig != nil {
		kind = operation.KindUpgradeRuntime
	}

	return s.once(ctx, caller, requestFor(runtimeID, kind), func() (operation.Status, error) {
		if err := validation.UpgradeRuntime(upgrade); err != nil {
			return operation.Status{}, err
		}

		wanted := func(present spec.Kyma) spec.Kyma { return installation.Upgraded(present, *upgrade.KymaConfig) }

		if err := s.installable(ctx, caller, runtimeID, wanted); err != nil {
			return operation.Status{}, err
		}

		replace := func(_ context.Context, _ storage.Tx, data *operation.Data) error {
			if err := reinstall(data, wanted); err != nil {
				return err
			}

			return upgradeOthers(data, upgrade)
		}

		return s.change(ctx, caller, runtimeID, kind, replace)
	})
}

// upgradeOthers sets the client data and the Kubernetes version in the operation's data, if the upgrade contains them.
func upgradeOthers(data *operation.Data, upgrade spec.KymaUpgrade) error {
	order, err := data.Order()
	if err != nil {
		return err
	}

	if upgrade.ClientData != nil {
		order.ClientData = upgrade.ClientData
	}

	if upgrade.ClusterConfig != nil {
		cluster, err := validation.UpgradeCluster(*order.ClusterConfig, upgrade.ClusterConfig.KubernetesVersion)
		if err != nil {
			return err
		}

		order.ClusterConfig = &cluster
	}

	return reorder(data, order)
}

// RollBackUpgrade accepts the reinstallation of the Kyma configuration that the last upgrade replaced, whether or not that
// upgrade succeeded. The rollback also replaces the client data of the runtime, unless clientData is nil. The error is
// failure.Conflict if the last change of Kyma was not an upgrade, and for the same reasons as in UpgradeRuntime.
func (s *Service) RollBackUpgrade(ctx context.Context, caller Caller, runtimeID string, clientData *string) (operation.Status, error) {
	return s.once(ctx, caller, requestFor(runtimeID, operation.KindRollBack), func() (operation.Status, error) {
		if err := validation.ClientData(clientData); err != nil {
			return operation.Status{}, err
		}

		former, err := s.formerKyma(ctx, s.Operations.Reader(), runtimeID)

		switch {
		case err == nil:
			err = s.installable(ctx, caller, runtimeID, always(former))
		case errors.Is(err, errNothingToRollBack):
			err = nil // the edit finds this error again; change may reject the request earlier for a more important reason
		}

		if err != nil {
			return operation.Status{}, unavailable(err)
		}

		restore := func(ctx context.Context, tx storage.Tx, data *operation.Data) error {
			former, err := s.formerKyma(ctx, tx, runtimeID)
			if err != nil {
				return err
			}

			if err := reinstall(data, always(former)); err != nil {
				return err
			}

			return upgradeOthers(data, spec.KymaUpgrade{ClientData: clientData})
		}

		return s.change(ctx, caller, runtimeID, operation.KindRollBack, restore)
	})
}

// replacement returns the Kyma configuration that replaces the current one.
type replacement func(present spec.Kyma) spec.Kyma

// always returns a replacement that returns the given configuration, whatever the current one is.
func always(kyma spec.Kyma) replacement {
	return func(spec.Kyma) spec.Kyma { return kyma }
}

// installable rejects a Kyma configuration that no release provides, and a hibernated cluster. It calls the release registry and
// Gardener, so it must run before the transaction. The runtime that it reads may be outdated, so Service.change applies the
// replacement again, to the locked row.
func (s *Service) installable(ctx context.Context, caller Caller, runtimeID string, replacement replacement) error {
	runtime, err := s.owned(ctx, s.Runtimes.Reader(), caller.Tenant, runtimeID)
	if err != nil {
		return err
	}

	data := operation.Data{Runtime: runtime}
	if err := reinstall(&data, replacement); err != nil {
		return err
	}

	order, err := data.Order()
	if err != nil {
		return err
	}

	if _, err := s.Releases.Plan(ctx, *order.KymaConfig); err != nil {
		return err
	}

	return s.awake(ctx, runtime)
}

// reinstall replaces the Kyma configuration in the operation's data, and also stores the replaced one there, for a rollback.
func reinstall(data *operation.Data, replacement replacement) error {
	order, err := data.Order()
	if err != nil {
		return err
	}

	if order.KymaConfig == nil {
		return failure.New(failure.Conflict, "the runtime %s was ordered without Kyma: there is nothing to upgrade", data.Runtime.ID).
			WithReason(failure.ReasonConflict, failure.ComponentProvisioner)
	}

	wanted := replacement(*order.KymaConfig)
	data.FormerKyma, order.KymaConfig = order.KymaConfig, &wanted

	return reorder(data, order)
}

// errNothingToRollBack is the cause of formerKyma's error if there is no upgrade to roll back. Callers check for it with
// errors.Is.
var errNothingToRollBack = errors.New("nothing to roll back")

// formerKyma returns the Kyma configuration that the last upgrade replaced, from the data of that upgrade. It includes failed
// upgrades, because they may have changed the cluster. It ignores failed rollbacks, so that they can be repeated. If there was no
// upgrade since the last creation or successful rollback, the error has the cause errNothingToRollBack.
func (s *Service) formerKyma(ctx context.Context, tx storage.Tx, runtimeID string) (spec.Kyma, error) {
	past, err := s.Operations.OfInstance(ctx, tx, runtimeID)
	if err != nil {
		return spec.Kyma{}, err
	}

	for _, record := range past {
		if operation.Provisions(record.Kind) || record.Kind == operation.KindRollBack && record.State == process.Succeeded {
			break
		}

		if !operation.UpgradesKyma(record.Kind) || !record.State.Terminal() {
			continue
		}

		upgrade, err := s.dataOf(ctx, tx, record.ID)
		if err != nil {
			return spec.Kyma{}, err
		}

		if upgrade.FormerKyma == nil {
			break
		}

		return *upgrade.FormerKyma, nil
	}

	return spec.Kyma{}, failure.Wrap(failure.Conflict, errNothingToRollBack,
		"the last change of Kyma on the runtime %s was not an upgrade: there is nothing to roll back", runtimeID).
		WithReason(failure.ReasonConflict, failure.ComponentProvisioner)
}
