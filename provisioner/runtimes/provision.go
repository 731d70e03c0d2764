package runtimes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// Provision implements graph.Runtimes. Nothing is made here: the runtime and its operation are rows first, in one transaction.
func (s *Service) Provision(ctx context.Context, caller graph.Caller, input model.ProvisionRuntimeInput,
) (model.OperationStatus, error) {
	if input.KymaConfig != nil {
		if _, err := s.Releases.Plan(ctx, *input.KymaConfig); err != nil {
			return model.OperationStatus{}, err
		}
	}

	configuration, err := json.Marshal(input)
	if err != nil {
		return model.OperationStatus{}, failure.Wrap(failure.Internal, err, "the order cannot be encoded")
	}

	operationID := uuid.NewString()
	runtime := runtimes.Runtime{
		Tenant:        caller.Tenant,
		SubAccount:    caller.SubAccount,
		ShootName:     input.ClusterConfig.GardenerConfig.Name,
		ProvisionedBy: operationID,
		Configuration: configuration,
		CreatedAt:     s.Clock.Now(),
	}

	order := registrationOf(caller, input)

	registered, err := s.identify(ctx, order, &runtime)
	if err != nil {
		return model.OperationStatus{}, unavailable(err)
	}

	err = s.DB.InTx(ctx, func(tx storage.Tx) error {
		known, err := s.Runtimes.Remember(ctx, tx, caller.Tenant, caller.IdempotencyKey, operationID, runtime.CreatedAt)
		if err != nil {
			return err
		}

		if known != operationID {
			operationID = known

			return s.answers(ctx, tx, known, request{does: operation.Provisions})
		}

		// Only what is new is checked. An order that is sent again finds its runtime also where the rules have become stricter.
		if err := s.Check(runtime); err != nil {
			return err
		}

		free := runtime.ID != ""
		if free {
			free, err = s.Runtimes.Insert(ctx, tx, runtime)
		}

		if err != nil {
			return err
		}

		if !free {
			operationID, err = s.provisionAgain(ctx, tx, caller, operationID, runtime, order)

			return err
		}

		return s.acceptProvisioning(ctx, tx, order, operationID, operation.Data{Runtime: runtime, Registered: s.Registrar != nil})
	})

	s.forgetUnused(ctx, registered, err)

	if err != nil {
		return model.OperationStatus{}, unavailable(err)
	}

	s.Wake()

	return s.OperationStatus(ctx, caller, operationID)
}

// provisionAgain decides on an order whose cluster's name is in use. The same order of the same tenant is answered with the operation
// that carries it, whatever its key. After a failure the order is carried out anew on the same runtime, as it is ordered now.
// It returns the operation that the key stands for from now on.
func (s *Service) provisionAgain(ctx context.Context, tx storage.Tx, caller graph.Caller, operationID string, ordered runtimes.Runtime, order registration.Order,
) (string, error) {
	taken := failure.New(failure.Conflict, "a cluster named %q exists already: remove it, or use another name",
		ordered.ShootName).WithReason(failure.ReasonAlreadyExists, failure.ComponentProvisionerStorage)

	existing, err := s.Runtimes.OfShoot(ctx, tx, ordered.ShootName)
	if errors.Is(err, storage.ErrNotFound) {
		return "", taken // it went this moment: the caller tries again, with the same key
	}

	if err != nil {
		return "", err
	}

	if err := s.Runtimes.Lock(ctx, tx, existing.ID); err != nil {
		return "", err
	}

	past, err := s.Operations.OfInstance(ctx, tx, existing.ID)

	switch {
	case err != nil:
		return "", err
	case existing.Tenant != caller.Tenant || len(past) == 0 || !operation.Provisions(past[0].Kind):
		return "", taken
	case past[0].State == process.Failed:
		existing.Configuration = ordered.Configuration

		if err := s.Runtimes.Reconfigure(ctx, tx, existing); err != nil {
			return "", err
		}

		registered, err := s.wasRegistered(ctx, tx, past[0].ID)
		if err != nil {
			return "", err
		}

		return operationID, s.acceptProvisioning(ctx, tx, order, operationID, operation.Data{Runtime: existing, Registered: registered})
	case !bytes.Equal(existing.Configuration, ordered.Configuration):
		return "", taken
	default:
		return past[0].ID, s.Runtimes.Reassign(ctx, tx, caller.Tenant, caller.IdempotencyKey, past[0].ID)
	}
}
