package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// removeRuntime asks the Provisioner to remove the runtime. The ID of the operation is the idempotency key of the request. The
// step succeeds if the Provisioner does not know the runtime, or if no runtime was ever ordered.
type removeRuntime struct {
	provisioner Provisioner
	instances   Instances
	waiter      provisionerwait.Waiter
	kind        func() provisionerclient.Kind
}

// Name implements process.Step.
func (removeRuntime) Name() string { return "Remove_Runtime" }

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
		operation.Data.Instance.RuntimeID = found
	}

	removal, err := s.provisioner.DeprovisionRuntime(ctx, provisionerclient.Caller{
		Tenant: instance.RuntimeTenant(), IdempotencyKey: operation.ID,
	}, instance.RuntimeID)

	switch {
	case failure.Is(err, failure.NotFound):
		log.WithField(logging.RuntimeID, instance.RuntimeID).Info("the Provisioner does not know the runtime: nothing to remove")

		return operation, 0, nil
	case failure.Is(err, failure.Waiting):
		return s.waiter.AwaitIdle(operation)
	case err != nil:
		return operation, 0, err
	}

	operation.Data.ProvisionerOperationID = removal
	operation.WaitingFor = provisionerwait.Event(removal)

	return operation, 0, nil
}

// findRuntime returns the ID of a runtime that was ordered but whose ID never reached the broker, or "" if there is none. It
// repeats the order under its idempotency key: afterwards exactly one runtime has this key, or none if the order is rejected.
// Kyma Provisioner has no idempotency keys, so its rejection does not prove that no runtime exists, and an operator has to look.
func (s removeRuntime) findRuntime(ctx context.Context, operation Operation) (string, error) {
	ordered, err := s.provisioner.OrderRuntime(ctx, provisionerclient.Caller{
		Tenant:         operation.Data.Instance.RuntimeTenant(),
		SubAccount:     operation.Data.Instance.SubAccountID,
		IdempotencyKey: operation.Data.Provisioning,
	}, operation.Data.Instance, operation.Data.TargetSecret, operation.Data.EarlierSecrets...)

	kind := s.kind()

	switch {
	case failure.Is(err, failure.Permanent) && kind == provisionerclient.KindUnknown:
		return "", failure.Wrap(failure.Waiting, err, "the Provisioner rejected the order, and it is not yet known whether it supports idempotency keys")
	case failure.Is(err, failure.Permanent) && kind == provisionerclient.KindKyma:
		return "", failure.Wrap(failure.Permanent, err, "a cluster named %q may be left over from the canceled creation: "+
			"look for it in Gardener and remove it by hand, then delete the instance again", operation.Data.Instance.ShootName)
	case failure.Is(err, failure.Permanent):
		return "", nil
	case err != nil:
		return "", err
	}

	if err := s.instances.SetRuntime(ctx, operation.Record, operation.Data.Instance, ordered.RuntimeID); err != nil {
		return "", failure.Wrap(failure.Transient, err, "recording the runtime failed")
	}

	return ordered.RuntimeID, nil
}
