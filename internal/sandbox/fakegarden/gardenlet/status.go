package gardenlet

import (
	"context"
	"fmt"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writeStatus applies change to a Shoot's status, and stores the status if it has changed. The update fails with a conflict if
// another client has changed the Shoot since it was read; the Shoot is then reconciled again from its new state.
func (g *Gardenlet) writeStatus(
	ctx context.Context, shoot *gardencorev1beta1.Shoot, change func(status *gardencorev1beta1.ShootStatus),
) error {
	before := shoot.Status.DeepCopy()
	change(&shoot.Status)
	if apiequality.Semantic.DeepEqual(before, &shoot.Status) {
		return nil
	}
	if err := g.Client.Status().Update(ctx, shoot); err != nil {
		return fmt.Errorf("writing the status of the shoot: %w", err)
	}
	return nil
}

// report updates the Shoot's status: the state and progress of the given operation, the observed generation, the seed, the
// technical ID and the UID. It does not write the Shoot.
func (g *Gardenlet) report(shoot *gardencorev1beta1.Shoot, operation gardencorev1beta1.LastOperationType, now progress) {
	status := &shoot.Status
	status.Gardener = gardencorev1beta1.Gardener{ID: "simulated", Name: "simulated-gardenlet", Version: "simulated"}
	status.ObservedGeneration = shoot.Generation
	if now.state == gardencorev1beta1.LastOperationStateSucceeded {
		hibernation := shoot.Spec.Hibernation
		// A hibernated runtime's API server keeps running, because stopping it would delete the runtime's objects.
		status.IsHibernated = hibernation != nil && hibernation.Enabled != nil && *hibernation.Enabled
	}
	status.SeedName = shoot.Spec.SeedName
	if status.TechnicalID == "" {
		status.TechnicalID = TechnicalID(g.Project, shoot.Name)
	}
	if status.UID == "" {
		status.UID = shoot.UID
	}
	reportOperation(status, operation, now)
}

// reportOperation sets the last operation and its errors. If only the time would change, it changes nothing, so that an idle
// Shoot is not written again.
func reportOperation(status *gardencorev1beta1.ShootStatus, operation gardencorev1beta1.LastOperationType, now progress) {
	description := describe(operation, now)
	last := status.LastOperation
	if last != nil && last.Type == operation && last.State == now.state && last.Progress == now.percent && last.Description == description {
		return
	}
	updated := metav1.Now()
	status.LastOperation = &gardencorev1beta1.LastOperation{
		Type:           operation,
		State:          now.state,
		Progress:       now.percent,
		Description:    description,
		LastUpdateTime: updated,
	}
	status.LastErrors = nil
	if now.failure == "" {
		return
	}
	lastError := gardencorev1beta1.LastError{Description: now.failure, LastUpdateTime: &updated}
	if now.code != "" {
		lastError.Codes = []gardencorev1beta1.ErrorCode{now.code}
	}
	status.LastErrors = []gardencorev1beta1.LastError{lastError}
}

// describe returns the description of an operation. The wording is Gardener's, so that users and tests see the same text as with
// a real gardenlet.
func describe(operation gardencorev1beta1.LastOperationType, now progress) string {
	doing, done := "reconciliation", "reconciled"
	if operation == gardencorev1beta1.LastOperationTypeCreate {
		doing, done = "creation", "created"
	}
	if operation == gardencorev1beta1.LastOperationTypeDelete {
		doing, done = "deletion", "deleted"
	}
	if now.failure != "" {
		description := fmt.Sprintf("Flow %q encountered task errors: [%s]", "Shoot cluster "+doing, now.failure)
		if now.state == gardencorev1beta1.LastOperationStateError {
			description += " Operation will be retried."
		}
		return description
	}
	if now.state == gardencorev1beta1.LastOperationStateSucceeded {
		return fmt.Sprintf("Shoot cluster has been successfully %s.", done)
	}
	return fmt.Sprintf("Shoot cluster %s in progress (%d%%).", doing, now.percent)
}

// reportHealth reports a healthy runtime at the endpoint, with Gardener's conditions for a cluster with nodes. It marks
// hibernation as possible, so that tests can hibernate the runtime.
func reportHealth(shoot *gardencorev1beta1.Shoot, endpoint Endpoint) {
	status := &shoot.Status
	status.AdvertisedAddresses = advertise(endpoint)
	for _, condition := range []gardencorev1beta1.ConditionType{
		gardencorev1beta1.ShootAPIServerAvailable,
		gardencorev1beta1.ShootControlPlaneHealthy,
		gardencorev1beta1.ShootObservabilityComponentsHealthy,
		gardencorev1beta1.ShootEveryNodeReady,
		gardencorev1beta1.ShootSystemComponentsHealthy,
	} {
		status.Conditions = withTrue(status.Conditions, condition, "Simulated", "All is well with the simulated runtime.")
	}
	status.Constraints = withTrue(status.Constraints, gardencorev1beta1.ShootHibernationPossible,
		"NoProblematicWebhooks", "All webhooks are properly configured.")
}

// advertise returns the address of an API server in the form that Gardener publishes. Admin kubeconfigs contain this address.
func advertise(endpoint Endpoint) []gardencorev1beta1.ShootAdvertisedAddress {
	return []gardencorev1beta1.ShootAdvertisedAddress{{Name: v1beta1constants.AdvertisedAddressExternal, URL: endpoint.URL}}
}

// withTrue returns the conditions with one condition set to true. If the condition is already true, its times stay unchanged: new
// times would change the status in each reconciliation, and each status change triggers another reconciliation.
func withTrue(
	conditions []gardencorev1beta1.Condition, kind gardencorev1beta1.ConditionType, reason, message string,
) []gardencorev1beta1.Condition {
	now := metav1.Now()
	condition := gardencorev1beta1.Condition{
		Type: kind, Status: gardencorev1beta1.ConditionTrue, LastTransitionTime: now, LastUpdateTime: now, Reason: reason, Message: message,
	}
	i := slices.IndexFunc(conditions, func(present gardencorev1beta1.Condition) bool { return present.Type == kind })
	if i < 0 {
		return append(conditions, condition)
	}
	if conditions[i].Status != gardencorev1beta1.ConditionTrue {
		conditions[i] = condition
	}
	return conditions
}
