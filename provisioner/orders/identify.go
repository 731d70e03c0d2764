package orders

import (
	"context"
	"errors"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage"
)

// identify sets the ID of the ordered runtime. It is the ID of a lost runtime, the ID that Director assigns to a new one or, without
// Director, a random ID. If a stored runtime already has the name of the cluster, nothing is registered: the order is either a repetition
// or will be rejected. The ID is then empty, unless there is neither a Shoot nor Director.
//
// It reads the Shoot before the rows: a Shoot is created after the row of its runtime, so the runtime of a Shoot without a row is lost.
func (s *Service) identify(ctx context.Context, p *provision) (registration.Registered, error) {
	existing, err := s.Shoots.Get(ctx, p.runtime.ShootName)
	missing := failure.Is(err, failure.NotFound)

	switch {
	case err != nil && !missing:
		return registration.Registered{}, err
	case missing && s.Registrar == nil:
		p.runtime.ID = uuid.NewString()

		return registration.Registered{}, nil
	}

	if _, err := s.Runtimes.OfShoot(ctx, s.Runtimes.Reader(), p.runtime.ShootName); !errors.Is(err, storage.ErrNotFound) {
		return registration.Registered{}, err
	}

	if missing {
		registered, err := s.Registrar.Register(ctx, p.order)
		p.runtime.ID, p.registered = registered.RuntimeID, true

		return registered, err
	}

	p.runtime.ID, err = s.lostRuntime(ctx, *p, existing)
	if err == nil && s.Registrar != nil {
		p.registered, err = s.Registrar.Has(ctx, p.order, p.runtime.ID)
	}

	return registration.Registered{}, err
}

// lostRuntime returns the ID of the runtime that owns the existing Shoot with the ordered name. The database has lost the
// runtime, for example in a failover with asynchronous replication, or because an older backup was restored. If the order has the
// same tenant and service instance as the Shoot, the order takes over the Shoot. Otherwise the error is failure.Conflict, which
// does not reveal the owner of the Shoot.
func (s *Service) lostRuntime(ctx context.Context, p provision, existing *gardencorev1beta1.Shoot) (string, error) {
	id := existing.Annotations[shoot.AnnotationRuntimeID]

	switch {
	case id == "",
		p.instanceID == "" || existing.Annotations[shoot.AnnotationInstanceID] != p.instanceID,
		existing.Labels[shoot.LabelAccount] != p.runtime.Tenant,
		existing.Annotations[shoot.AnnotationAccount] != p.runtime.OriginalTenant:
		return "", failure.New(failure.Conflict, "a cluster named %q already exists in Gardener and does not belong to this tenant and instance: "+
			"remove it, or use another name", p.runtime.ShootName).WithReason(failure.ReasonAlreadyExists, failure.ComponentGardener)
	case existing.DeletionTimestamp != nil:
		return "", failure.New(failure.Conflict, "a cluster named %q is being deleted in Gardener: repeat the order when it is gone",
			p.runtime.ShootName).WithReason(failure.ReasonAlreadyExists, failure.ComponentGardener)
	}

	// A runtime with a row is not lost. The row records the runtime as deleted, and package service deletes the Shoot.
	_, err := s.Runtimes.Get(ctx, s.Runtimes.Reader(), id)
	if errors.Is(err, storage.ErrNotFound) {
		return id, nil
	}

	if err != nil {
		return "", err
	}

	return "", failure.New(failure.Conflict, "a cluster named %q still exists in Gardener, but its runtime is recorded as deleted: "+
		"repeat the order when it is gone", p.runtime.ShootName).WithReason(failure.ReasonAlreadyExists, failure.ComponentGardener)
}
