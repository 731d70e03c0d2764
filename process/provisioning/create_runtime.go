package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// createRuntime orders the runtime. It stores the intent before the first request. The ID of the operation is the idempotency
// key, so a repeated order creates no second runtime. A retry by an operator is a new operation with a new ID, so it orders under
// a new key.
type createRuntime struct {
	provisioner Provisioner
	instances   Instances
}

// Name implements process.Step.
func (createRuntime) Name() string { return "Create_Runtime_Without_Kyma" }

// Run implements process.Step.
func (s createRuntime) Run(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
	operation.Data.Ordered, operation.Data.Provisioning = true, operation.ID

	if err := operation.Save(ctx); err != nil {
		return operation, 0, failure.Wrap(failure.Transient, err, "could not store the order before sending it")
	}

	instance := operation.Data.Instance

	ordered, err := s.provisioner.OrderRuntime(ctx, provisionerclient.Caller{
		Tenant:         instance.RuntimeTenant(),
		SubAccount:     instance.SubAccountID,
		IdempotencyKey: operation.Data.Provisioning,
	}, instance, operation.Data.TargetSecret, operation.Data.EarlierSecrets...)
	if failure.Is(err, failure.Permanent) && failure.Of(err).Reason == failure.ReasonAlreadyExists {
		return operation, 0, failure.Wrap(failure.Permanent, err, "a cluster named %q already exists: look for it in Gardener, "+
			"remove it by hand if nobody needs it, then delete the instance and create it again", instance.ShootName).
			WithReason(failure.ReasonAlreadyExists, failure.ComponentProvisioner)
	}

	if err != nil {
		return operation, 0, err
	}

	if err := s.instances.SetRuntime(ctx, operation.Record, instance, ordered.RuntimeID); err != nil {
		return operation, 0, failure.Wrap(failure.Transient, err, "recording the runtime failed")
	}

	operation.Data.Instance.RuntimeID = ordered.RuntimeID
	operation.Data.Instance.Request = environment.Request{Cluster: environment.Cluster{ // later steps need only this part of the request
		ServiceManager: instance.Request.Cluster.ServiceManager, Kyma: instance.Request.Cluster.Kyma,
	}}
	operation.Data.ProvisionerOperationID = ordered.ID
	operation.WaitingFor = provisionerwait.Event(ordered.ID)

	log.WithField(logging.RuntimeID, ordered.RuntimeID).Info("runtime ordered")

	return operation, 0, nil
}
