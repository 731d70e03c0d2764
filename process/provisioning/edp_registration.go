package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/edp"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
	"github.com/environment-broker/environment-broker/process"
)

// After an error, the step tries to register the subaccount in EDP every edpInterval for at most edpWindow.
const (
	edpInterval = 10 * time.Second
	edpWindow   = 30 * time.Minute
	// removalWindow is how long the step waits for a removal by another instance, which takes five minutes at most. If an operator skips
	// the removal while it is retried, its record stays. Registering is safe then, because a later removal finds the record of this
	// instance.
	removalWindow = 10 * time.Minute
)

// EDP registers subaccounts in the Event Data Platform. Register is idempotent.
type EDP interface {
	Register(ctx context.Context, tenant edp.Tenant) error
}

// Objects records the objects of instances in other systems. SetObject and RemoveObject fail if the operation has lost its lease;
// the step must then not call the system. Errors carry a failure.Kind.
type Objects interface {
	// FindObject returns the recorded object of the instance, or an object with an empty state if none is recorded.
	FindObject(ctx context.Context, instanceID, system, kind string) (environment.OutsideObject, error)
	SetObject(ctx context.Context, by process.Record, object environment.OutsideObject) error
	RemoveObject(ctx context.Context, by process.Record, object environment.OutsideObject) error
	// Sharing returns the records of other instances that name the same object.
	Sharing(ctx context.Context, object environment.OutsideObject) ([]environment.OutsideObject, error)
}

// registerEDP registers the subaccount of the instance. All instances of a subaccount share one registration, so the step waits
// while another instance removes it. Like the removal, the step first writes its own record and then reads the records of others.
// If both run at the same time, at least one of them therefore sees the record of the other.
type registerEDP struct {
	client  EDP
	objects Objects
	// required makes the operation fail if the registration is impossible. If it is false, the operation continues without the
	// registration.
	required bool
}

// Name implements process.Step.
func (registerEDP) Name() string { return "EDP_Registration" }

// Run implements process.Step.
func (s registerEDP) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	instance := operation.Data.Instance

	object, err := s.objects.FindObject(ctx, instance.ID, environment.SystemEDP, environment.KindDataTenant)
	if err != nil || object.State == environment.OutsideCreated {
		return operation, 0, err
	}

	object.Key, object.State = edp.TenantName(instance.SubAccountID), environment.OutsideCreating
	if err := s.objects.SetObject(ctx, operation.Record, object); err != nil {
		return operation, 0, err
	}

	others, err := s.objects.Sharing(ctx, object)
	if err != nil {
		return operation, 0, err
	}

	for _, other := range others {
		if other.State == environment.OutsideRemoving && operation.Elapsed() < removalWindow {
			return process.Await(operation, "another instance of the subaccount is being removed from EDP", edpInterval, removalWindow)
		}
	}

	err = s.client.Register(ctx, edp.Tenant{Name: instance.SubAccountID, PlatformRegion: instance.PlatformRegion, PlanName: instance.PlanName})
	if err != nil {
		return s.failed(operation, err)
	}

	object.State = environment.OutsideCreated

	return operation, 0, s.objects.SetObject(ctx, operation.Record, object)
}

// failed retries after a transient error. After edpWindow, or immediately after any other error, the operation fails or continues
// without the registration.
func (s registerEDP) failed(operation Operation, err error) (Operation, time.Duration, error) {
	interval, window := restclient.RetryAfter(err, edpInterval), edpWindow
	passing := failure.Is(err, failure.Transient) || failure.Is(err, failure.NotFound) // another instance has just removed the tenant

	switch {
	case s.required && passing:
		return process.RetryOperation(operation, "", err, interval, window)
	case s.required:
		return operation, 0, err
	case !passing:
		window = 0
	}

	return process.RetryOperationWithoutFail(operation, "", err, interval, window)
}
