package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// edpInterval is the pause between two attempts to remove a subaccount.
const edpInterval = 10 * time.Second

// EDP removes subaccounts from the Event Data Platform. Deregister is idempotent.
type EDP interface {
	Deregister(ctx context.Context, subaccount string) error
}

// deregisterEDP removes the subaccount from EDP when the last instance of the subaccount is removed. It first marks the instance's
// record and then reads the records of other instances. If two instances are removed at the same time, at least the one that is
// marked later sees the mark of the other and removes the subaccount. A new instance sees the mark and waits.
type deregisterEDP struct {
	// client is nil if EDP is turned off. A registration then stays and is recorded as left over.
	client  EDP
	objects Objects
}

// Name implements process.Step.
func (deregisterEDP) Name() string { return "EDP_Deregistration" }

// Run implements process.Step.
func (s deregisterEDP) Run(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
	object, err := s.objects.FindObject(ctx, operation.InstanceID, environment.SystemEDP, environment.KindDataTenant)
	if err != nil || object.State == "" {
		return operation, 0, err
	}

	object.State = environment.OutsideRemoving
	if err := s.objects.SetObject(ctx, operation.Record, object); err != nil {
		return operation, 0, err
	}

	shared, err := s.shared(ctx, object)
	if err != nil {
		return operation, 0, err
	}

	if !shared {
		if err := s.deregister(ctx, object); err != nil {
			return cleanup{objects: s.objects, object: object, cause: err, interval: edpInterval, off: s.client == nil}.retry(ctx, operation, log)
		}
	}

	return operation, 0, s.objects.RemoveObject(ctx, operation.Record, object)
}

// shared reports whether another instance needs the registration.
func (s deregisterEDP) shared(ctx context.Context, object environment.OutsideObject) (bool, error) {
	others, err := s.objects.Sharing(ctx, object)
	for _, other := range others {
		if other.State == environment.OutsideCreating || other.State == environment.OutsideCreated {
			return true, nil
		}
	}

	return false, err
}

func (s deregisterEDP) deregister(ctx context.Context, object environment.OutsideObject) error {
	if s.client == nil {
		return failure.New(failure.Permanent, "EDP is turned off: an operator must set APP_EDP_ADMIN_URL").
			WithReason(failure.ReasonInternal, failure.ComponentEDP)
	}

	return s.client.Deregister(ctx, object.Key) //nolint:wrapcheck // names EDP
}
