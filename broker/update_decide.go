package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// situation is an instance that is to be updated, as it is inside the transaction.
type situation struct {
	wish
	environment.Instance

	standing environment.Phase
	// change is what the wish makes of the instance, changed the instance with it.
	change  environment.Update
	changed environment.Instance
}

// decide on an update inside the transaction. To touch the instance first makes everybody who decides on it take turns.
func (a *api) decide(ctx context.Context, tx storage.Tx, wish wish) (updated, error) {
	present, err := a.Instances.Touch(ctx, tx, wish.instanceID, a.Clock.Now())
	if err != nil {
		return updated{}, err
	}

	if !present {
		return updated{}, notFound(textNoInstance)
	}

	instance, err := a.Instances.Get(ctx, tx, wish.instanceID)
	if err != nil {
		return updated{}, err
	}

	past, err := a.Operations.OfInstance(ctx, tx, instance.ID)
	if err != nil {
		return updated{}, err
	}

	// Whatever it stands like, a request that makes no sense is told so.
	target, err := a.planAfter(wish, instance)
	if err != nil {
		return updated{}, err
	}

	if unfinished := environment.Unfinished(past); len(unfinished) > 0 {
		return a.repeatedUpdate(ctx, tx, wish, instance, unfinished)
	}

	s := situation{wish: wish, Instance: instance, standing: environment.PhaseOf(past)}
	if s.change, err = a.changeOf(wish, instance, target); err != nil {
		return updated{}, err
	}

	if s.changed, err = s.change.Apply(instance); err != nil {
		return updated{}, err
	}

	if s.change.Exclusive != instance.Exclusive {
		if err := a.checkQuota(ctx, tx, target, s.change.GlobalAccountID, instance.ID); err != nil {
			return updated{}, err
		}
	}

	return a.carryOut(ctx, tx, s)
}

// carryOut begins what the wish needs, or does it where that is only a matter of rows.
func (a *api) carryOut(ctx context.Context, tx storage.Tx, s situation) (updated, error) {
	if err := a.refuses(s); err != nil {
		return updated{}, err
	}

	switch {
	case s.wants(false) && s.standing != environment.Suspended:
		return a.beginUpdate(ctx, tx, environment.KindSuspend, s)
	case s.wants(true) && s.standing != environment.Active:
		if err := a.Instances.Update(ctx, tx, s.changed); err != nil {
			return updated{}, err
		}

		return a.beginUpdate(ctx, tx, environment.KindResume, s)
	case s.standing == environment.Active && !same(s.change.Cluster, s.Request.Cluster):
		return a.beginUpdate(ctx, tx, environment.KindUpdate, s)
	case same(s.changed, s.Instance):
		return updated{}, nil
	default:
		return updated{}, a.updateRow(ctx, tx, s)
	}
}

// updateRow makes a change that concerns the broker alone.
func (a *api) updateRow(ctx context.Context, tx storage.Tx, s situation) error {
	if err := a.Instances.Update(ctx, tx, s.changed); err != nil {
		return err
	}

	entry := auditlog.Entry{Action: auditlog.ActionUpdate, InstanceID: s.ID, Status: http.StatusOK}
	entry.Before, entry.After = auditlog.Difference(s.Shown(), s.changed.Shown())

	return a.Trail.Record(ctx, tx, entry)
}

// refuses tells why the instance, as it stands, cannot be updated in this way, or nil.
func (a *api) refuses(s situation) error {
	contextOnly := s.PlanID == s.change.PlanID && s.MaintenanceVersion == s.change.MaintenanceVersion && !holds(s.parameters)

	switch {
	case s.standing == environment.CreationFailed:
		return unprocessable("", textProvisionFailed)
	case s.standing == environment.DeletionFailed:
		return unprocessable("", textDeletionFailed)
	case s.Expired() && (s.wants(true) || !contextOnly):
		return unprocessable("", textExpired)
	case s.wants(false) && s.standing != environment.Suspended:
		if !a.Periods.Has(s.PlanName) {
			return unprocessable("", fmt.Sprintf(textNotSuspendable, s.PlanName))
		}
	case s.standing == environment.SuspensionFailed && (s.wants(true) || !contextOnly):
		return unprocessable("", textSuspensionOpen)
	case s.standing == environment.ResumptionFailed && !contextOnly:
		return unprocessable("", textResumptionOpen)
	}

	return nil
}

// wants reports whether the wish says so about the runtime.
func (w wish) wants(active bool) bool { return w.active != nil && *w.active == active }

// beginUpdate accepts an operation. A suspension and an update make their change when they succeed.
func (a *api) beginUpdate(ctx context.Context, tx storage.Tx, kind string, s situation) (updated, error) {
	if !s.acceptsDeferred {
		return updated{}, asyncRequired()
	}

	change := &s.change
	if kind == environment.KindResume {
		change = nil
	}

	operation, err := environment.NewOperation(kind, s.Instance, change, a.Clock.Now())
	if err != nil {
		return updated{}, err
	}

	if operation, err = ordered(ctx, operation, &s.Instance, &s.changed); err != nil {
		return updated{}, err
	}

	return updated{operation: operation.ID, accepted: true}, a.Operations.Accept(ctx, tx, operation)
}

// repeatedUpdate answers an update while an operation is at work: with that, if it brings all that is wanted.
func (a *api) repeatedUpdate(ctx context.Context, tx storage.Tx, wish wish, instance environment.Instance, unfinished []process.Record,
) (updated, error) {
	running := unfinished[0]

	contrary := map[string]bool{
		environment.KindProvision:   true,
		environment.KindDeprovision: true,
		environment.KindUpdate:      wish.wants(false),
		environment.KindSuspend:     wish.wants(true),
		environment.KindResume:      wish.wants(false),
	}
	if contrary[running.Kind] || len(unfinished) > 1 {
		return updated{}, concurrent()
	}

	becoming, err := a.becoming(ctx, tx, instance, running)
	if err != nil {
		return updated{}, err
	}

	target, err := a.planAfter(wish, becoming)
	if err != nil {
		return updated{}, err
	}

	change, err := a.changeOf(wish, becoming, target)
	if err != nil {
		return updated{}, err
	}

	wanted, err := change.Apply(becoming)

	switch {
	case err != nil:
		return updated{}, err
	case !same(wanted, becoming):
		return updated{}, concurrent()
	case !wish.acceptsDeferred:
		return updated{}, asyncRequired()
	default:
		return updated{operation: running.ID}, nil
	}
}

// becoming is the instance as the operation makes it.
func (a *api) becoming(ctx context.Context, tx storage.Tx, instance environment.Instance, running process.Record,
) (environment.Instance, error) {
	payload, err := a.Operations.Payload(ctx, tx, running.ID)
	if err != nil {
		return instance, err
	}

	var data environment.Data
	if err := json.Unmarshal(payload, &data); err != nil {
		return instance, fmt.Errorf("decoding the data of operation %s: %w", running.ID, err)
	}

	if data.Update == nil {
		return instance, nil
	}

	return data.Update.Apply(instance)
}
