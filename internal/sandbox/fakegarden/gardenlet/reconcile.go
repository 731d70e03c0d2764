package gardenlet

import (
	"context"
	"fmt"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// reconcile brings a Shoot one step on and returns after which time it wants to be looked at again; zero: when it changes.
func (g *Gardenlet) reconcile(ctx context.Context, name string) (time.Duration, error) {
	shoot := &gardencorev1beta1.Shoot{}
	err := g.client.Get(ctx, client.ObjectKey{Namespace: g.namespace, Name: name}, shoot)
	if apierrors.IsNotFound(err) {
		return 0, g.stop(ctx, name)
	}
	if err != nil {
		return 0, fmt.Errorf("read the shoot: %w", err)
	}
	if shoot.DeletionTimestamp != nil {
		return g.remove(ctx, shoot)
	}
	if err := g.claim(ctx, shoot); err != nil {
		return 0, err
	}
	if err := g.keepRunning(ctx, shoot); err != nil {
		return 0, err
	}
	if err := g.spendFailure(ctx, shoot); err != nil {
		return 0, err
	}
	if err := g.begin(ctx, shoot); err != nil {
		return 0, err
	}
	if !underway(shoot) {
		return 0, nil
	}
	return g.advance(ctx, shoot)
}

// claim makes a new Shoot one of this gardenlet: bound to its seed, protected by the finalizer, with a domain.
func (g *Gardenlet) claim(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	if g.seedName != "" && shoot.Spec.SeedName == nil {
		shoot.Spec.SeedName = &g.seedName
		if err := g.client.SubResource("binding").Update(ctx, shoot); err != nil {
			return fmt.Errorf("bind the shoot to the seed %s: %w", g.seedName, err)
		}
	}
	before := shoot.DeepCopy()
	changed := controllerutil.AddFinalizer(shoot, gardencorev1beta1.GardenerName)
	if g.dnsDomain != "" && (shoot.Spec.DNS == nil || shoot.Spec.DNS.Domain == nil) {
		if shoot.Spec.DNS == nil {
			shoot.Spec.DNS = &gardencorev1beta1.DNS{}
		}
		shoot.Spec.DNS.Domain = new(shoot.Name + "." + g.project + "." + g.dnsDomain)
		changed = true
	}
	if !changed {
		return nil
	}
	if err := g.client.Patch(ctx, shoot, optimisticPatch(before)); err != nil {
		return fmt.Errorf("add the finalizer and the domain to the shoot: %w", err)
	}
	return nil
}

// begin starts an operation if the Shoot asks for one: because it is new, because its generation was raised by a change of the spec,
// or by a retry.
func (g *Gardenlet) begin(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	last := shoot.Status.LastOperation
	if last != nil && shoot.Status.ObservedGeneration == shoot.Generation {
		return nil
	}
	operation, began := gardencorev1beta1.LastOperationTypeReconcile, metav1.Now()
	switch {
	case last == nil:
		operation, began = gardencorev1beta1.LastOperationTypeCreate, shoot.CreationTimestamp
	case last.Type == gardencorev1beta1.LastOperationTypeCreate && last.State != gardencorev1beta1.LastOperationStateSucceeded:
		operation = gardencorev1beta1.LastOperationTypeCreate
	}
	if underway(shoot) && shoot.Status.RetryCycleStartTime != nil {
		began = *shoot.Status.RetryCycleStartTime
	}
	g.log.WithField("shoot", shoot.Name).WithField("operation", operation).Info("gardenlet begins an operation")
	return g.writeStatus(ctx, shoot, func(status *gardencorev1beta1.ShootStatus) {
		status.RetryCycleStartTime = &began
		g.report(shoot, operation, standing{state: gardencorev1beta1.LastOperationStateProcessing})
	})
}

// underway says whether an operation has begun that has not come to an end.
func underway(shoot *gardencorev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	if last == nil {
		return false
	}
	return last.State == gardencorev1beta1.LastOperationStatePending ||
		last.State == gardencorev1beta1.LastOperationStateProcessing ||
		last.State == gardencorev1beta1.LastOperationStateError
}

// advance reports how far the running operation is and, when its time has come, completes it.
func (g *Gardenlet) advance(ctx context.Context, shoot *gardencorev1beta1.Shoot) (time.Duration, error) {
	fault, err := g.fault(ctx, shoot.Name)
	if err != nil {
		return 0, err
	}
	began := shoot.CreationTimestamp
	if shoot.Status.RetryCycleStartTime != nil {
		began = *shoot.Status.RetryCycleStartTime
	}
	now := standingAfter(time.Since(began.Time), g.creation, fault)
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
		g.log.WithField("shoot", shoot.Name).WithField("operation", operation).WithField("state", now.state).
			Info("gardenlet ends an operation")
	}
	return now.next, err
}

// remove takes a deleted Shoot apart.
func (g *Gardenlet) remove(ctx context.Context, shoot *gardencorev1beta1.Shoot) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(shoot, gardencorev1beta1.GardenerName) {
		return 0, g.stop(ctx, shoot.Name)
	}
	now := standingAfter(time.Since(shoot.DeletionTimestamp.Time), g.deletion, "")
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
	if err := g.client.Patch(ctx, shoot, optimisticPatch(before)); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("drop the finalizer of the shoot: %w", err)
	}
	g.log.WithField("shoot", shoot.Name).Info("gardenlet has deleted the shoot")
	return 0, nil
}

func optimisticPatch(before *gardencorev1beta1.Shoot) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}
