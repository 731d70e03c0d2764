package runtimes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/validation"
	"github.com/environment-broker/environment-broker/storage"
)

// UpgradeRuntime implements graph.Runtimes. What was installed before stands in the operation too: a later RollBack needs it.
func (s *Service) UpgradeRuntime(ctx context.Context, caller graph.Caller, runtimeID string, upgrade model.UpgradeRuntimeInput,
) (model.OperationStatus, error) {
	known, found, err := s.repeated(ctx, caller, requestFor(runtimeID, operation.KindUpgrade))
	if err != nil || found {
		return known, err
	}

	if err := validation.UpgradeRuntime(upgrade); err != nil {
		return model.OperationStatus{}, err
	}

	wanted := func(present model.KymaConfigInput) model.KymaConfigInput {
		return installation.Upgraded(present, *upgrade.KymaConfig)
	}

	if err := s.mayInstall(ctx, caller, runtimeID, wanted); err != nil {
		return model.OperationStatus{}, err
	}

	return s.change(ctx, caller, runtimeID, operation.KindUpgrade, func(_ context.Context, _ storage.Tx, data *operation.Data) error {
		return reinstall(data, wanted)
	})
}

// RollBackUpgrade implements graph.Runtimes.
func (s *Service) RollBackUpgrade(ctx context.Context, caller graph.Caller, runtimeID string) (model.OperationStatus, error) {
	known, found, err := s.repeated(ctx, caller, requestFor(runtimeID, operation.KindRollBack))
	if err != nil || found {
		return known, err
	}

	former, err := s.formerKyma(ctx, s.Operations.Reader(), runtimeID)

	switch {
	case err == nil:
		err = s.mayInstall(ctx, caller, runtimeID, always(former))
	case errors.Is(err, errNothingToRollBack):
		err = nil // told below, unless there is more to say of a runtime that cannot be changed at all
	}

	if err != nil {
		return model.OperationStatus{}, unavailable(err)
	}

	return s.change(ctx, caller, runtimeID, operation.KindRollBack, func(ctx context.Context, tx storage.Tx, data *operation.Data) error {
		former, err := s.formerKyma(ctx, tx, runtimeID)
		if err != nil {
			return err
		}

		return reinstall(data, always(former))
	})
}

// another says what is to be installed instead of what is.
type another func(present model.KymaConfigInput) model.KymaConfigInput

func always(config model.KymaConfigInput) another {
	return func(model.KymaConfigInput) model.KymaConfigInput { return config }
}

// mayInstall refuses what cannot be installed: a plan that nobody can make, or a cluster that sleeps. It asks other systems, and so
// does it before the transaction.
func (s *Service) mayInstall(ctx context.Context, caller graph.Caller, runtimeID string, another another) error {
	runtime, err := s.owned(ctx, s.Runtimes.Reader(), caller.Tenant, runtimeID)
	if err != nil {
		return err
	}

	data := operation.Data{Runtime: runtime}
	if err := reinstall(&data, another); err != nil {
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

// reinstall has the operation bring the runtime to another Kyma than it has.
func reinstall(data *operation.Data, another another) error {
	order, err := data.Order()
	if err != nil {
		return err
	}

	if order.KymaConfig == nil {
		return failure.New(failure.Conflict, "the runtime %s was ordered without Kyma, there is nothing to upgrade", data.Runtime.ID).
			WithReason(failure.ReasonConflict, failure.ComponentProvisioner)
	}

	wanted := another(*order.KymaConfig)
	data.FormerKyma, order.KymaConfig = order.KymaConfig, &wanted

	return reorder(data, order)
}

// errNothingToRollBack is one that the caller can do nothing about but to order another upgrade.
var errNothingToRollBack = errors.New("nothing to roll back")

// formerKyma is what the last upgrade of Kyma found installed. It can be put back until something else has: a roll back that failed
// may be tried again.
func (s *Service) formerKyma(ctx context.Context, tx storage.Tx, runtimeID string) (model.KymaConfigInput, error) {
	past, err := s.Operations.OfInstance(ctx, tx, runtimeID)
	if err != nil {
		return model.KymaConfigInput{}, err
	}

	for _, record := range past {
		switch {
		case record.Kind == operation.KindUpgrade && record.State.Terminal():
			return s.foundBy(ctx, tx, record)
		case record.Kind == operation.KindRollBack && record.State == process.Succeeded, operation.Provisions(record.Kind):
			return model.KymaConfigInput{}, nothingToRollBack(runtimeID)
		}
	}

	return model.KymaConfigInput{}, nothingToRollBack(runtimeID)
}

func nothingToRollBack(runtimeID string) error {
	return failure.Wrap(failure.Conflict, errNothingToRollBack,
		"the last change of Kyma on the runtime %s was no upgrade, there is nothing to roll back", runtimeID).
		WithReason(failure.ReasonConflict, failure.ComponentProvisioner)
}

// foundBy is what an upgrade found installed.
func (s *Service) foundBy(ctx context.Context, tx storage.Tx, upgrade process.Record) (model.KymaConfigInput, error) {
	payload, err := s.Operations.Payload(ctx, tx, upgrade.ID)
	if err != nil {
		return model.KymaConfigInput{}, err
	}

	var data operation.Data
	if err := json.Unmarshal(payload, &data); err != nil {
		return model.KymaConfigInput{}, fmt.Errorf("reading what operation %s found installed: %w", upgrade.ID, err)
	}

	if data.FormerKyma == nil {
		return model.KymaConfigInput{}, nothingToRollBack(upgrade.InstanceID)
	}

	return *data.FormerKyma, nil
}
