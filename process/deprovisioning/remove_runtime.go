package deprovisioning

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// unknownWindow is how long removeRuntime retries if the Provisioner does not know the runtime. The Provisioner may know it again
// soon, for example while its database is being restored or the broker is being connected to another Provisioner.
const unknownWindow = 5 * time.Minute

// removeRuntime requests the removal of the runtime from the Provisioner. The ID of the operation is the idempotency key of the
// request. The step succeeds if no runtime was ever ordered, or if the Provisioner knew the runtime earlier in the removal and no
// longer knows it.
//
// If the Provisioner has never known the runtime, the runtime may still exist: the broker may be connected to the wrong
// Provisioner, or the Provisioner may have lost its database while the cluster runs and costs money. The step then fails after
// unknownWindow, and an operator decides.
type removeRuntime struct {
	provisioner Provisioner
	instances   Instances
	waiter      provisionerwait.Waiter
	kind        func() provisionerclient.Kind
	leftOver    leftOverFunc
}

const stepRemoveRuntime = "Remove_Runtime"

// Name implements process.Step.
func (removeRuntime) Name() string { return stepRemoveRuntime }

// Run implements process.Step.
func (s removeRuntime) Run(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
	instance := operation.Data.Instance
	operation.Data.ProvisionerOperationID = "" // a retry inherits the ID of the failed removal

	if instance.RuntimeID == "" {
		if !operation.Data.Ordered {
			return operation, 0, nil // no runtime was ever ordered
		}

		found, err := s.findRuntime(ctx, operation)
		if err != nil || found == "" {
			return operation, 0, err
		}

		instance.RuntimeID = found
		operation.Data.Instance.RuntimeID, operation.Data.RuntimeKnown = found, true

		if operation.Kind == environment.KindCleanup { // unlessUsed did not know the ID
			if user, err := s.instances.RuntimeUser(ctx, instance); err != nil || user != "" {
				return used(operation, user, log), 0, err
			}
		}
	}

	removal, err := s.provisioner.DeprovisionRuntime(ctx, provisionerclient.Caller{
		Tenant: instance.RuntimeTenant(), IdempotencyKey: operation.ID,
	}, instance.RuntimeID)

	switch {
	case failure.Is(err, failure.NotFound) && operation.Data.RuntimeKnown:
		log.WithField(logging.RuntimeID, instance.RuntimeID).Info("the Provisioner has removed the runtime")

		return operation, 0, nil
	case failure.Is(err, failure.NotFound):
		return s.runtimeUnknown(operation, err)
	case failure.Is(err, failure.Waiting):
		operation.Data.RuntimeKnown = true

		return s.waiter.AwaitIdle(operation)
	case err != nil:
		return operation, 0, err
	}

	operation.Data.ProvisionerOperationID, operation.Data.RuntimeKnown = removal, true
	operation.WaitingFor = provisionerwait.Event(removal)

	return operation, 0, nil
}

// runtimeUnknown fails the attempt because the Provisioner does not know the runtime. After unknownWindow it fails the
// operation. The error message appears in the timeline, so it says what the operator can do. A retry of the operation starts a new
// unknownWindow.
func (s removeRuntime) runtimeUnknown(operation Operation, cause error) (Operation, time.Duration, error) {
	instance := operation.Data.Instance
	reported := func(kind failure.Kind, todo string) error {
		return failure.Wrap(kind, cause, "the Provisioner at APP_PROVISIONER_URL does not know the runtime %s (cluster %q), which may still be running: %s",
			instance.RuntimeID, instance.ShootName, todo).WithReason(failure.ReasonRuntimeUnknown, failure.ComponentProvisioner)
	}

	if operation.Data.UnknownSince.IsZero() {
		operation.Data.UnknownSince = operation.Now()
	}

	if operation.Now().Sub(operation.Data.UnknownSince) < unknownWindow {
		return operation, 0, reported(failure.Transient, fmt.Sprintf("retrying for %s", unknownWindow))
	}

	operation.Data.UnknownSince = time.Time{}

	s.leftOver.report(LeftOverUnknown)

	return operation, 0, reported(failure.Permanent,
		"correct APP_PROVISIONER_URL or restore the runtime there and retry, or remove the cluster and retry without "+s.Name())
}

// findRuntime returns the ID of a runtime that was ordered but whose ID never reached the broker, or "" if there is no such
// runtime. It repeats the order under its idempotency key, so that exactly one runtime has this key, or none if the Provisioner
// rejects the order. Kyma Provisioner has no idempotency keys: its rejection does not prove that no runtime exists, so an
// operator has to look.
func (s removeRuntime) findRuntime(ctx context.Context, operation Operation) (string, error) {
	ordered, err := s.provisioner.OrderRuntime(ctx, provisionerclient.Caller{
		Tenant:         operation.Data.Instance.RuntimeTenant(),
		SubAccount:     operation.Data.Instance.SubAccountID,
		IdempotencyKey: operation.Data.Provisioning,
	}, operation.Data.Instance, operation.Data.TargetSecret, operation.Data.EarlierSecrets...)

	kind := s.kind()

	switch {
	case failure.Is(err, failure.Permanent) && kind == provisionerclient.KindUnknown:
		return "", failure.Wrap(failure.Waiting, err, "the Provisioner rejected the order, and the broker does not know yet whether this Provisioner supports idempotency keys")
	case failure.Is(err, failure.Permanent) && kind == provisionerclient.KindKyma:
		return "", failure.Wrap(failure.Permanent, err, "a cluster named %q may be left over from the unfinished creation: "+
			"look for it in Gardener and remove it by hand, then delete the instance again", operation.Data.Instance.ShootName)
	case failure.Is(err, failure.Permanent):
		return "", nil
	case err != nil:
		return "", err
	}

	if operation.Kind == environment.KindCleanup {
		return ordered.RuntimeID, nil // the instance is suspended or gone, and must not refer to its former runtime
	}

	if err := s.instances.SetRuntime(ctx, operation.Record, operation.Data.Instance, ordered.RuntimeID); err != nil {
		return "", failure.Wrap(failure.Transient, err, "recording the runtime failed")
	}

	return ordered.RuntimeID, nil
}
