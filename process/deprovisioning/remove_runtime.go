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

// removeRuntime has the Provisioner remove the runtime.
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
	operation.Data.ProvisionerOperationID = "" // a retry brings that of the operation that failed

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
		log.WithField(logging.RuntimeID, instance.RuntimeID).Info("the Provisioner does not know the runtime, nothing is left to remove")

		return operation, 0, nil
	case failure.Is(err, failure.Waiting):
		return s.waiter.StandBack(operation)
	case err != nil:
		return operation, 0, err
	}

	operation.Data.ProvisionerOperationID = removal
	operation.WaitingFor = provisionerwait.Event(removal)

	return operation, 0, nil
}

// findRuntime learns the id of a runtime that was ordered and whose id never reached the broker. It sends the order again under
// its key: whatever became of the first one, afterwards there is the runtime of that key and no other, or none when the order is
// refused. A former Provisioner knows no keys; its refusal proves nothing, and people have to look.
func (s removeRuntime) findRuntime(ctx context.Context, operation Operation) (string, error) {
	ordered, err := s.provisioner.OrderRuntime(ctx, provisionerclient.Caller{
		Tenant:         operation.Data.Instance.RuntimeTenant(),
		SubAccount:     operation.Data.Instance.SubAccountID,
		IdempotencyKey: operation.Data.Provisioning,
	}, operation.Data.Instance, operation.Data.TargetSecret)

	kind := s.kind()

	switch {
	case failure.Is(err, failure.Permanent) && kind == provisionerclient.KindUnknown:
		return "", failure.Wrap(failure.Waiting, err, "the Provisioner refuses the order, and has not told yet whether it knows its key")
	case failure.Is(err, failure.Permanent) && kind == provisionerclient.KindKyma:
		return "", failure.Wrap(failure.Permanent, err, "a cluster named %q may be left from the canceled creation: "+
			"look for it in Gardener and remove it by hand, then delete the instance again", operation.Data.Instance.ShootName)
	case failure.Is(err, failure.Permanent):
		return "", nil
	case err != nil:
		return "", err
	}

	if err := s.instances.SetRuntime(ctx, operation.Record, operation.Data.Instance, ordered.RuntimeID); err != nil {
		return "", failure.Wrap(failure.Transient, err, "the runtime could not be recorded")
	}

	return ordered.RuntimeID, nil
}
