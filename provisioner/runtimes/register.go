package runtimes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// registrationOf is what Director gets to know of an order.
func registrationOf(caller graph.Caller, input model.ProvisionRuntimeInput) registration.Order {
	order := registration.Order{
		Tenant: caller.Tenant, Key: caller.IdempotencyKey, ShootName: input.ClusterConfig.GardenerConfig.Name,
		Name: input.RuntimeInput.Name, Labels: input.RuntimeInput.Labels,
	}

	if input.RuntimeInput.Description != nil {
		order.Description = *input.RuntimeInput.Description
	}

	return order
}

// identify gives the runtime its id: one of its own or, with Director, the one that it is registered with. Registered is only what is
// about to be accepted. An order whose cluster's name is in use gets no id: it belongs to the runtime that there is, or is refused.
func (s *Service) identify(ctx context.Context, order registration.Order, runtime *runtimes.Runtime) (registration.Registered, error) {
	if s.Registrar == nil {
		runtime.ID = uuid.NewString()

		return registration.Registered{}, nil
	}

	_, err := s.Runtimes.OfShoot(ctx, s.Runtimes.Reader(), runtime.ShootName)
	if !errors.Is(err, storage.ErrNotFound) {
		return registration.Registered{}, err
	}

	if err := s.Check(*runtime); err != nil {
		return registration.Registered{}, err
	}

	registered, err := s.Registrar.Register(ctx, order)
	runtime.ID = registered.RuntimeID

	return registered, err
}

// acceptProvisioning adds the operation that makes the runtime inside the transaction, and has its registration looked after.
func (s *Service) acceptProvisioning(ctx context.Context, tx storage.Tx, order registration.Order, operationID string, data operation.Data,
) error {
	if data.Registered && s.Registrar != nil {
		if err := s.Registrar.Accept(ctx, tx, order, data.Runtime.ID, operationID); err != nil {
			return err
		}
	}

	kind, err := kindFor(data.Runtime, operation.KindProvision, operation.KindProvisionNoInstall)
	if err != nil {
		return err
	}

	return s.accept(ctx, tx, operationID, kind, data)
}

// forgetUnused unregisters what no runtime stands for after the transaction. When it is not known whether that was committed nothing is
// unregistered: the same order, sent again, finds it.
func (s *Service) forgetUnused(ctx context.Context, registered registration.Registered, err error) {
	if registered.RuntimeID != "" && (err == nil || !failure.Is(unavailable(err), failure.Transient)) {
		s.Registrar.Forget(ctx, registered)
	}
}

// wasRegistered reports whether the runtime of an operation was registered in Director when that was accepted.
func (s *Service) wasRegistered(ctx context.Context, tx storage.Tx, operationID string) (bool, error) {
	payload, err := s.Operations.Payload(ctx, tx, operationID)
	if err != nil {
		return false, err
	}

	var data operation.Data
	if err := json.Unmarshal(payload, &data); err != nil {
		return false, fmt.Errorf("reading the data of operation %s: %w", operationID, err)
	}

	return data.Registered, nil
}
