package runtimes

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// Known implements graph.Runtimes.
func (s *Service) Known(ctx context.Context, caller graph.Caller) (model.OperationStatus, bool, error) {
	if caller.IdempotencyKey == "" {
		return model.OperationStatus{}, false, nil
	}

	operationID, err := s.Runtimes.Recall(ctx, s.Runtimes.Reader(), caller.Tenant, caller.IdempotencyKey)
	if errors.Is(err, storage.ErrNotFound) {
		return model.OperationStatus{}, false, nil
	}

	if err != nil {
		return model.OperationStatus{}, false, unavailable(err)
	}

	known, err := s.OperationStatus(ctx, caller, operationID)

	return known, err == nil, err
}

// Provision implements graph.Runtimes. Nothing is made here: the runtime and its operation are rows first, in one transaction.
func (s *Service) Provision(ctx context.Context, caller graph.Caller, input model.ProvisionRuntimeInput,
) (model.OperationStatus, error) {
	if input.KymaConfig != nil {
		return model.OperationStatus{}, failure.New(failure.Invalid,
			"kymaConfig: the installation of Kyma is not supported yet, leave it out")
	}

	configuration, err := json.Marshal(input)
	if err != nil {
		return model.OperationStatus{}, failure.Wrap(failure.Internal, err, "the order cannot be encoded")
	}

	operationID := uuid.NewString()
	runtime := runtimes.Runtime{
		ID:            uuid.NewString(),
		Tenant:        caller.Tenant,
		SubAccount:    caller.SubAccount,
		ShootName:     input.ClusterConfig.GardenerConfig.Name,
		ProvisionedBy: operationID,
		Configuration: configuration,
		CreatedAt:     s.Clock.Now(),
	}

	err = s.DB.InTx(ctx, func(tx storage.Tx) error {
		known, err := s.Runtimes.Remember(ctx, tx, caller.Tenant, caller.IdempotencyKey, operationID, runtime.CreatedAt)
		if err != nil || known != operationID {
			operationID = known

			return err
		}

		// Only what is new is checked. An order that is sent again finds its runtime also where the rules have become stricter.
		if err := s.Check(runtime); err != nil {
			return err
		}

		free, err := s.Runtimes.Insert(ctx, tx, runtime)
		if err != nil {
			return err
		}

		if !free {
			return failure.New(failure.Conflict, "a cluster named %q exists already: remove it, or use another name",
				runtime.ShootName).Because(failure.ReasonAlreadyExists, failure.ComponentProvisionerStorage)
		}

		return s.accept(ctx, tx, operationID, operation.KindProvisionNoInstall, runtime)
	})
	if err != nil {
		return model.OperationStatus{}, unavailable(err)
	}

	s.Wake()

	return s.OperationStatus(ctx, caller, operationID)
}
