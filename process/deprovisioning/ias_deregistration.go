package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// iasInterval is the pause between two attempts to remove a service provider.
const iasInterval = 5 * time.Second

// IAS removes the service providers of instances from Identity Authentication. Remove is idempotent.
type IAS interface {
	Remove(ctx context.Context, instanceID string) error
}

// deregisterIAS removes the service provider that Kyma Environment Broker registered for the instance's Grafana. This broker creates
// no service providers, so a record exists only after an earlier removal was abandoned.
type deregisterIAS struct {
	client  IAS
	objects Objects
}

// Name implements process.Step.
func (deregisterIAS) Name() string { return "IAS_Deregistration" }

// Run implements process.Step.
func (s deregisterIAS) Run(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
	object, err := s.objects.FindObject(ctx, operation.InstanceID, environment.SystemIAS, environment.KindServiceProvider)
	if err != nil {
		return operation, 0, err
	}

	if err := s.client.Remove(ctx, operation.Data.Instance.ID); err != nil {
		object.Key = operation.Data.Instance.ID

		return cleanup{objects: s.objects, object: object, cause: err, interval: iasInterval}.retry(ctx, operation, log)
	}

	if object.State == "" {
		return operation, 0, nil
	}

	return operation, 0, s.objects.RemoveObject(ctx, operation.Record, object)
}
