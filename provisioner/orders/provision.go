package orders

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// Provision accepts the order for a runtime and returns the operation that creates the runtime. If an earlier order for the same
// cluster has used the caller's idempotency key, Provision returns the operation of the earlier order. It does not validate the
// repeated order, because the rules may have become stricter since then.
//
// The error is failure.Invalid for an order that breaks a rule, failure.Conflict if another order uses the name of the cluster,
// and failure.Transient if the database, Gardener, Director or the release registry is unavailable. After a transient error the order may
// have been accepted, so the caller should repeat the order with the same key.
func (s *Service) Provision(ctx context.Context, caller Caller, order spec.Runtime) (operation.Status, error) {
	wanted := creation(order)

	return s.once(ctx, caller, wanted, func() (operation.Status, error) { return s.provisionNew(ctx, caller, order, wanted) })
}

// provisionNew accepts an order whose key is unknown or missing. It validates the order and identifies the runtime in Gardener and
// Director, both outside the transaction, and then stores the rows. If a concurrent request with the same key commits first, provisionNew
// returns the operation of that request and unregisters its own runtime. After a crash between registration and commit, the
// caretaker of package registration unregisters the runtime.
func (s *Service) provisionNew(ctx context.Context, caller Caller, order spec.Runtime, wanted request) (operation.Status, error) {
	p, err := s.prepare(ctx, caller, order)
	if err != nil {
		return operation.Status{}, err
	}

	registered, err := s.identify(ctx, &p)
	if err != nil {
		return operation.Status{}, unavailable(err)
	}

	status, err := s.transact(ctx, func(tx storage.Tx) (operation.Status, error) {
		repeated, err := s.remember(ctx, tx, caller, wanted, p.runtime.ProvisionedBy)
		if err != nil {
			return operation.Status{}, err
		}

		if repeated != nil {
			return *repeated, nil
		}

		inserted := p.runtime.ID != ""
		if inserted {
			inserted, err = s.Runtimes.Insert(ctx, tx, p.runtime)
		}

		if err != nil {
			return operation.Status{}, err
		}

		if !inserted {
			return s.provisionAgain(ctx, tx, p)
		}

		return s.acceptProvisioning(ctx, tx, p, operation.Data{Runtime: p.runtime, Registered: p.registered})
	})

	// Forget does nothing if the row of the runtime exists. After a transient error the outcome of the commit is unknown, so the
	// registration stays and the repeated order finds it.
	if s.Registrar != nil && registered.RuntimeID != "" && !failure.Is(err, failure.Transient) {
		s.Registrar.Forget(ctx, registered)
	}

	return status, err
}

// provision is a valid order that has not been accepted yet.
type provision struct {
	caller Caller
	// runtime is the row to insert. If its ID is empty, the name of its cluster is in use.
	runtime runtimes.Runtime
	// registered reports whether the runtime is registered in Director.
	registered bool
	// instanceID is the ID of the service instance, or empty.
	instanceID string
	// order contains the fields that the registration in Director needs.
	order registration.Order
}

// prepare completes the order with the defaults, validates it and returns the row of its runtime. To find errors early, it also builds
// the Shoot and plans the installation.
func (s *Service) prepare(ctx context.Context, caller Caller, order spec.Runtime) (provision, error) {
	if s.Defaults != nil {
		order = s.Defaults.completed(order)
	}

	if s.Validate != nil {
		if err := s.Validate(order); err != nil {
			return provision{}, err
		}
	}

	configuration, err := spec.Encode(order)
	if err != nil {
		return provision{}, failure.Wrap(failure.Internal, err, "the order cannot be encoded")
	}

	runtime := runtimes.Runtime{
		Tenant:         caller.Tenant,
		SubAccount:     caller.SubAccount,
		OriginalTenant: caller.OriginalTenant, OriginalSubAccount: caller.OriginalSubAccount,
		ShootName:     order.ClusterConfig.GardenerConfig.Name,
		ProvisionedBy: uuid.NewString(),
		Configuration: configuration,
		CreatedAt:     s.Clock.Now(),
		Provider:      order.ClusterConfig.GardenerConfig.Provider,
		Region:        order.ClusterConfig.GardenerConfig.Region,
	}

	if err := s.Check(runtime); err != nil {
		return provision{}, err
	}

	if order.KymaConfig != nil {
		if _, err := s.Releases.Plan(ctx, *order.KymaConfig); err != nil {
			return provision{}, err
		}
	}

	registered := registration.Order{
		Tenant: runtime.Account(), Key: caller.IdempotencyKey, ShootName: runtime.ShootName,
		Name: order.Metadata.Name, Labels: order.Metadata.Labels,
	}
	if order.Metadata.Description != nil {
		registered.Description = *order.Metadata.Description
	}

	return provision{caller: caller, runtime: runtime, instanceID: order.InstanceID(), order: registered}, nil
}

// acceptProvisioning stores, in the transaction, the operation that creates the runtime. It also links the registration to the
// operation, so that the caretaker does not remove the registration.
func (s *Service) acceptProvisioning(ctx context.Context, tx storage.Tx, p provision, data operation.Data,
) (operation.Status, error) {
	if data.Registered && s.Registrar != nil {
		if err := s.Registrar.Accept(ctx, tx, p.order, data.Runtime.ID, p.runtime.ProvisionedBy); err != nil {
			return operation.Status{}, err
		}
	}

	kind, err := kindFor(data.Runtime, operation.KindProvision, operation.KindProvisionNoInstall)
	if err != nil {
		return operation.Status{}, err
	}

	return s.accept(ctx, tx, p.runtime.ProvisionedBy, kind, data)
}

// provisionAgain handles an order whose cluster name is in use. It rejects the order if the existing runtime belongs to another
// tenant. If the newest operation of the runtime is a failed or canceled creation, provisionAgain accepts a new operation for the
// runtime, even if the order differs from the earlier one. If the order repeats the runtime's order (see sameOrder), even with
// another key, provisionAgain returns the operation that created the runtime. It rejects all other orders.
func (s *Service) provisionAgain(ctx context.Context, tx storage.Tx, p provision) (operation.Status, error) {
	taken := failure.New(failure.Conflict, "a cluster named %q already exists: remove it, or use another name",
		p.runtime.ShootName).WithReason(failure.ReasonAlreadyExists, failure.ComponentProvisionerStorage)

	existing, err := s.Runtimes.OfShoot(ctx, tx, p.runtime.ShootName)
	if errors.Is(err, storage.ErrNotFound) {
		return operation.Status{}, taken // the runtime was removed in the meantime; the caller can repeat the order
	}

	if err != nil {
		return operation.Status{}, err
	}

	if err := s.Runtimes.Lock(ctx, tx, existing.ID); err != nil {
		return operation.Status{}, err
	}

	past, err := s.Operations.OfInstance(ctx, tx, existing.ID)
	if err != nil {
		return operation.Status{}, err
	}

	created, found := creationOf(past)

	switch {
	case existing.Tenant != p.caller.Tenant || !found:
		return operation.Status{}, taken
	case created.ID == past[0].ID && operation.PublicState(past[0].State) == process.Failed:
		existing.Configuration, existing.Provider, existing.Region = p.runtime.Configuration, p.runtime.Provider, p.runtime.Region

		if err := s.Runtimes.Reconfigure(ctx, tx, existing); err != nil {
			return operation.Status{}, err
		}

		former, err := s.dataOf(ctx, tx, past[0].ID)
		if err != nil {
			return operation.Status{}, err
		}

		return s.acceptProvisioning(ctx, tx, p, operation.Data{Runtime: existing, Registered: former.Registered})
	}

	repeated, err := sameOrder(existing, p)

	switch {
	case err != nil:
		return operation.Status{}, err
	case !repeated:
		return operation.Status{}, taken
	default:
		return operation.StatusOf(created), s.Runtimes.Reassign(ctx, tx, p.caller.Tenant, p.caller.IdempotencyKey, created.ID)
	}
}

// creationOf returns the newest operation that creates the runtime, given all operations of the runtime, newest first. It reports
// false if a later operation removes the runtime, or if the creation is so old that its row is gone.
func creationOf(past []process.Record) (process.Record, bool) {
	for _, record := range past {
		if operation.Provisions(record.Kind) {
			return record, true
		}

		if operation.Deprovisions(record.Kind) {
			break
		}
	}

	return process.Record{}, false
}

// sameOrder reports whether an order repeats the order of the existing runtime. The caller has checked the tenant and the name of the
// Shoot. The orders are the same if they are equal, or if both have the ID of the same service instance. Kyma Environment Broker
// needs the second rule: after a lost response it repeats an order with a different runtime name and different zones, which it
// chooses at random. If the repeated order were rejected, the broker would lose track of the cluster.
func sameOrder(existing runtimes.Runtime, p provision) (bool, error) {
	if bytes.Equal(existing.Configuration, p.runtime.Configuration) {
		return true, nil
	}

	first, err := operation.OrderOf(existing)
	if err != nil {
		return false, err
	}

	return p.instanceID != "" && first.InstanceID() == p.instanceID, nil
}

// dataOf reads and decodes the sealed data of an operation.
func (s *Service) dataOf(ctx context.Context, tx storage.Tx, operationID string) (operation.Data, error) {
	var data operation.Data

	payload, err := s.Operations.Payload(ctx, tx, operationID)
	if err != nil {
		return data, err
	}

	if err := json.Unmarshal(payload, &data); err != nil {
		return data, fmt.Errorf("reading the data of operation %s: %w", operationID, err)
	}

	return data, nil
}
