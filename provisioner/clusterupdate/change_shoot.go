package clusterupdate

import (
	"context"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

// changeShoot applies the Shoot as it is to be.
type changeShoot struct {
	shoots Shoots
	build  BuildShoot
	// asleep, if set, says whether the cluster is to sleep; else it goes on as it does.
	asleep *bool
}

// Name implements process.Step.
func (changeShoot) Name() string { return "Change_Shoot" }

// Run implements process.Step. The Shoot is read before the lease is confirmed, and written only if it has not changed since: what a
// frozen replica writes late cannot undo a later change.
func (s changeShoot) Run(ctx context.Context, op operation.Operation, log logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	runtime := op.Data.Runtime

	present, err := s.shoots.Get(ctx, runtime.ShootName)
	if err != nil {
		return op, 0, err
	}

	if present.Annotations[shoot.AnnotationRuntimeID] != runtime.ID {
		return op, 0, failure.New(failure.Conflict, "the cluster %q is not of this runtime", runtime.ShootName).
			WithReason(failure.ReasonConflict, failure.ComponentGardener)
	}

	objects, err := s.build(runtime, op.ID)
	if err != nil {
		return op, 0, err
	}

	objects.Keep(present)

	if s.asleep != nil {
		objects.Shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: s.asleep}
	}

	op.Data.Asleep = shoot.ToSleep(objects.Shoot)
	op.WaitingFor = operation.ShootEvent(runtime.ShootName)
	if err := op.Save(ctx); err != nil {
		return op, 0, failure.Wrap(failure.Transient, err, "the operation could not be stored before the cluster is changed")
	}

	if err := s.shoots.Change(ctx, present, objects); err != nil {
		return op, 0, err
	}

	log.WithField("shoot", runtime.ShootName).Info("shoot changed")

	return op, 0, nil
}
