package orders

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
	"github.com/environment-broker/environment-broker/storage"
)

// UpgradeShoot accepts the upgrade of a cluster. The operation stores the upgraded order; the row of the runtime contains the
// previous order until the operation has succeeded. The error is failure.Invalid for a change that Gardener would reject, such as
// a removed zone or a lower Kubernetes version. A hibernated cluster can be upgraded.
func (s *Service) UpgradeShoot(ctx context.Context, caller Caller, runtimeID string, upgrade spec.Upgrade,
) (operation.Status, error) {
	var (
		status operation.Status
		err    error
	)

	for range maxAttempts {
		upgraded := s.upgraded(ctx, caller, runtimeID, upgrade)

		status, err = s.change(ctx, caller, runtimeID, operation.KindUpgradeShoot, func(_ context.Context, _ storage.Tx, data *operation.Data) error {
			if upgraded.before == nil || !bytes.Equal(data.Runtime.Configuration, upgraded.before) {
				return errChanged
			}

			data.Runtime.Configuration, data.DroppedPools = upgraded.after, upgraded.dropped

			return upgraded.err
		})
		if !errors.Is(err, errChanged) {
			return status, err
		}
	}

	return status, err
}

// maxAttempts is the maximum number of attempts to accept an upgrade. An attempt fails if the runtime changes between the
// validation of the upgrade and the transaction.
const maxAttempts = 3

// errChanged ends a transaction if another operation has changed the runtime since the upgrade was validated.
var errChanged = failure.New(failure.Transient, "another operation has just changed the runtime: try again")

// upgradedOrder is an encoded order before and after an upgrade, with the names of the worker pools that the upgrade removes. If err is
// not nil, the upgrade is invalid. If before is nil, the runtime could not be read.
type upgradedOrder struct {
	before, after []byte
	dropped       []string
	err           error
}

// upgraded validates an upgrade and returns the upgraded order. Callers call it before the transaction that accepts the upgrade,
// because other requests wait for that transaction.
func (s *Service) upgraded(ctx context.Context, caller Caller, runtimeID string, upgrade spec.Upgrade) upgradedOrder {
	runtime, err := s.owned(ctx, s.Runtimes.Reader(), caller.Tenant, runtimeID)
	if err != nil {
		return upgradedOrder{err: err} // change reads the runtime again and reports the error
	}

	result := upgradedOrder{before: runtime.Configuration}
	data := operation.Data{Runtime: runtime}

	order, err := data.Order()
	if err != nil {
		result.err = err

		return result
	}

	cluster, err := validation.UpgradeShoot(*order.ClusterConfig, upgrade)
	if err != nil {
		result.err = err

		return result
	}

	result.dropped = droppedPools(order.ClusterConfig.GardenerConfig, cluster.GardenerConfig)
	order.ClusterConfig = &cluster

	if upgrade.ClientData != nil {
		order.ClientData = upgrade.ClientData
	}

	if result.err = reorder(&data, order); result.err == nil {
		result.after, result.err = data.Runtime.Configuration, s.Check(data.Runtime)
	}

	return result
}

// droppedPools returns the names of the additional worker pools that the upgraded cluster does not have.
func droppedPools(present, upgraded *spec.Cluster) []string {
	var dropped []string

	for _, pool := range present.AdditionalWorkers {
		if !slices.ContainsFunc(upgraded.AdditionalWorkers, func(other *spec.WorkerPool) bool { return other.Name == pool.Name }) {
			dropped = append(dropped, pool.Name)
		}
	}

	return dropped
}
