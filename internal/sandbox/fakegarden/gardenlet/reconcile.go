package gardenlet

import (
	"context"
	"fmt"
	"slices"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// reconcile advances a Shoot by one step. It returns the time until the Shoot is due again, or 0 if it waits for a change. Every
// step is idempotent, because the gardenlet can die after any of them.
//
// The order of the steps matters. The finalizer is added before the runtime exists, so that a deleted Shoot never leaves a
// runtime behind. After a restart, the runtime is started before the status changes. FaultFailOnce is recorded as spent before a
// retry starts, because the retry would fail otherwise.
func (g *Gardenlet) reconcile(ctx context.Context, name string) (time.Duration, error) {
	shoot := &gardencorev1beta1.Shoot{}
	err := g.Client.Get(ctx, client.ObjectKey{Namespace: g.namespace, Name: name}, shoot)
	if apierrors.IsNotFound(err) {
		return 0, g.stop(ctx, name)
	}
	if err != nil {
		return 0, fmt.Errorf("reading the shoot: %w", err)
	}
	if shoot.DeletionTimestamp != nil {
		return g.remove(ctx, shoot)
	}
	for _, step := range []func(context.Context, *gardencorev1beta1.Shoot) error{
		g.adopt, g.keepRunning, g.spendFailure, g.startOperation,
	} {
		if err := step(ctx, shoot); err != nil {
			return 0, err
		}
	}
	if !running(shoot) {
		return 0, nil
	}
	return g.advance(ctx, shoot)
}

// adopt prepares a new Shoot: it binds the Shoot to the seed, adds the finalizer and sets the domain. It does not write a Shoot
// that is already prepared.
func (g *Gardenlet) adopt(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	if g.SeedName != "" && shoot.Spec.SeedName == nil {
		shoot.Spec.SeedName = &g.SeedName
		if err := g.Client.SubResource("binding").Update(ctx, shoot); err != nil {
			return fmt.Errorf("binding the shoot to the seed %s: %w", g.SeedName, err)
		}
	}
	before := shoot.DeepCopy()
	changed := controllerutil.AddFinalizer(shoot, gardencorev1beta1.GardenerName)
	if g.DNSDomain != "" && (shoot.Spec.DNS == nil || shoot.Spec.DNS.Domain == nil) {
		if shoot.Spec.DNS == nil {
			shoot.Spec.DNS = &gardencorev1beta1.DNS{}
		}
		shoot.Spec.DNS.Domain = new(shoot.Name + "." + g.Project + "." + g.DNSDomain)
		changed = true
	}
	if !changed {
		return nil
	}
	if err := g.Client.Patch(ctx, shoot, optimisticPatch(before)); err != nil {
		return fmt.Errorf("adding the finalizer and the domain to the shoot: %w", err)
	}
	return nil
}

// startOperation starts an operation for a new Shoot and for every new generation, which results from a change of the spec or a
// retry. As in Gardener, an unfinished creation remains a creation. If the Shoot changes during an operation, the operation keeps
// its start time.
func (g *Gardenlet) startOperation(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	last := shoot.Status.LastOperation
	if last != nil && shoot.Status.ObservedGeneration == shoot.Generation {
		return nil
	}
	operation, started := gardencorev1beta1.LastOperationTypeReconcile, metav1.Now()
	switch {
	case last == nil:
		operation, started = gardencorev1beta1.LastOperationTypeCreate, shoot.CreationTimestamp
	case last.Type == gardencorev1beta1.LastOperationTypeCreate && last.State != gardencorev1beta1.LastOperationStateSucceeded:
		operation = gardencorev1beta1.LastOperationTypeCreate
	}
	if running(shoot) && shoot.Status.RetryCycleStartTime != nil {
		started = *shoot.Status.RetryCycleStartTime
	}
	g.Log.WithField("shoot", shoot.Name).WithField("operation", operation).Info("the gardenlet has started an operation")
	return g.writeStatus(ctx, shoot, func(status *gardencorev1beta1.ShootStatus) {
		status.RetryCycleStartTime = &started
		g.report(shoot, operation, progress{state: gardencorev1beta1.LastOperationStateProcessing})
	})
}

// running reports whether an operation has started and not ended. An operation in the Error state resumes without intervention;
// an operation in the Failed state does not.
func running(shoot *gardencorev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	return last != nil && slices.Contains([]gardencorev1beta1.LastOperationState{
		gardencorev1beta1.LastOperationStatePending, gardencorev1beta1.LastOperationStateProcessing, gardencorev1beta1.LastOperationStateError,
	}, last.State)
}

// advance reports the progress of the running operation, and completes the operation when it is due. The progress depends only on
// the time since the start and on the fault, so it is the same after a restart.
func (g *Gardenlet) advance(ctx context.Context, shoot *gardencorev1beta1.Shoot) (time.Duration, error) {
	fault, err := g.fault(ctx, shoot.Name)
	if err != nil {
		return 0, err
	}
	started := shoot.CreationTimestamp
	if shoot.Status.RetryCycleStartTime != nil {
		started = *shoot.Status.RetryCycleStartTime
	}
	now := progressAfter(time.Since(started.Time), g.Creation, fault)
	var endpoint Endpoint
	if now.state == gardencorev1beta1.LastOperationStateSucceeded {
		if endpoint, err = g.start(ctx, shoot); err != nil {
			return 0, err
		}
	}
	operation := shoot.Status.LastOperation.Type
	err = g.writeStatus(ctx, shoot, func(*gardencorev1beta1.ShootStatus) {
		g.report(shoot, operation, now)
		if now.state == gardencorev1beta1.LastOperationStateSucceeded {
			reportHealth(shoot, endpoint)
		}
	})
	if err == nil && now.next == 0 {
		g.Log.WithField("shoot", shoot.Name).WithField("operation", operation).WithField("state", now.state).
			Info("the gardenlet has ended an operation")
	}
	return now.next, err
}

// remove advances the deletion of a Shoot. It removes the finalizer last, after the runtime and its objects, so that a gardenlet
// that restarts in between repeats all steps.
func (g *Gardenlet) remove(ctx context.Context, shoot *gardencorev1beta1.Shoot) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(shoot, gardencorev1beta1.GardenerName) {
		return 0, g.stop(ctx, shoot.Name)
	}
	now := progressAfter(time.Since(shoot.DeletionTimestamp.Time), g.Deletion, "")
	done := now.state == gardencorev1beta1.LastOperationStateSucceeded
	if done {
		if err := g.dismantle(ctx, shoot); err != nil {
			return 0, err
		}
	}
	if err := g.writeStatus(ctx, shoot, func(status *gardencorev1beta1.ShootStatus) {
		g.report(shoot, gardencorev1beta1.LastOperationTypeDelete, now)
		if done {
			status.AdvertisedAddresses = nil
		}
	}); err != nil {
		return 0, err
	}
	if !done {
		return now.next, nil
	}
	before := shoot.DeepCopy()
	controllerutil.RemoveFinalizer(shoot, gardencorev1beta1.GardenerName)
	if err := g.Client.Patch(ctx, shoot, optimisticPatch(before)); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("removing the finalizer of the shoot: %w", err)
	}
	g.Log.WithField("shoot", shoot.Name).Info("the gardenlet has deleted the shoot")
	return 0, nil
}

// optimisticPatch returns a patch that fails with a conflict if the stored Shoot is newer than before. A patch replaces the whole
// list of finalizers, so without this condition it could remove the finalizer of another controller.
func optimisticPatch(before *gardencorev1beta1.Shoot) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}
