package broker

import (
	"context"
	"errors"
	"net/http"

	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

const (
	// accountCleanup is the User-Agent of the Kyma Environment Broker job that deletes the instances of deleted subaccounts. The
	// deletion's timeline names the job, because no user requested the deletion.
	accountCleanup       = "accountcleanup-job"
	reasonAccountCleanup = "requested by " + accountCleanup + ": the subaccount was deleted"
)

// reasonDeleted is shown in the timelines of operations that a deletion cancels.
const reasonDeleted = "the instance is being deleted"

// deprovision handles DELETE /v2/service_instances/{instance_id}. The response is 202 with the operation, 410 if the instance does
// not exist, or 422 if the instance is protected. A deletion is accepted during any other operation, so that users need not wait
// for a creation that they no longer want. The deletion cancels the other operation, unless that operation is an upgrade. The
// steps of an upgrade notice the deletion, and the upgrade ends as succeeded.
func (a *api) deprovision(r request) (httpserver.Response, error) {
	result, err := decide(r.Context(), a, func(tx storage.Tx) (outcome, error) { return a.decideDeprovision(r.Context(), tx, r) })
	if err != nil {
		return httpserver.Response{}, err
	}

	a.started(r.Context(), result)

	return httpserver.Response{
		Status: http.StatusAccepted, Body: apiresponses.DeprovisionResponse{OperationData: result.operation},
	}, nil
}

// decideDeprovision returns the running deletion or accepts a new one. It touches the instance first, so that
// concurrent requests run one after another. A repeated request finds the running deletion even if the instance's row
// is gone: older replicas delete the row before the operation ends.
func (a *api) decideDeprovision(ctx context.Context, tx storage.Tx, r request) (outcome, error) {
	id, err := a.lookupID(ctx, tx, r.instanceID)
	if err != nil {
		return outcome{}, err
	}

	present, err := a.Instances.Touch(ctx, tx, id, a.Clock.Now())
	if err != nil {
		return outcome{}, err
	}

	newest, _, err := a.latest(ctx, tx, id, lifecycleKinds()...)
	if err != nil {
		return outcome{}, err
	}

	deleting := beingDeleted(newest) && reusable(newest)

	var instance environment.Instance

	if present {
		if instance, err = a.Instances.Get(ctx, tx, id); err != nil {
			return outcome{}, err
		}

		if err := checkReached(ctx, instance); err != nil {
			return outcome{}, err
		}

		if instance.ServiceID != r.query.Get("service_id") || instance.PlanID != r.query.Get("plan_id") {
			return outcome{}, wrongIDs(instance)
		}
	} else if !deleting {
		return outcome{}, gone(textNoInstance)
	}

	switch {
	case !r.acceptsIncomplete():
		return outcome{}, asyncRequired()
	case deleting:
		return outcome{operation: newest.ID}, nil
	}

	if protected(instance, newest) {
		return outcome{}, unprocessable(codeProtected, textProtected)
	}

	why := ""
	if r.UserAgent() == accountCleanup {
		why = reasonAccountCleanup
	}

	return a.acceptDeprovision(ctx, tx, instance, why)
}

// DeleteWithSubaccount accepts the deletion of an instance whose subaccount was deleted. If the instance does not exist or is
// already being deleted, it does nothing and accepted is false. If the instance is protected, it records the rejection in the
// audit log and returns an error of kind failure.Conflict.
func DeleteWithSubaccount(ctx context.Context, options Options, instanceID, reason string) (accepted bool, err error) {
	a := &api{Options: options}

	result, err := decide(ctx, a, func(tx storage.Tx) (outcome, error) {
		present, err := a.Instances.Touch(ctx, tx, instanceID, a.Clock.Now())
		if err != nil || !present {
			return outcome{}, err
		}

		newest, _, err := a.latest(ctx, tx, instanceID, lifecycleKinds()...)
		if err != nil || beingDeleted(newest) && reusable(newest) {
			return outcome{}, err
		}

		instance, err := a.Instances.Get(ctx, tx, instanceID)
		if err != nil {
			return outcome{}, err
		}

		if protected(instance, newest) {
			return outcome{}, failure.New(failure.Conflict, "the instance is protected: an operator must lift the protection")
		}

		return a.acceptDeprovision(ctx, tx, instance, reason)
	})
	if err == nil {
		a.started(ctx, result)
	}

	if failure.Is(err, failure.Conflict) {
		a.Recorder.Refused(ctx, auditlog.Entry{
			Action: environment.KindDeprovision, InstanceID: instanceID, Status: http.StatusUnprocessableEntity, Code: codeProtected, Reason: reason,
		})
	}

	return result.accepted, err
}

// Protected reports whether the instance exists and is currently protected from deletion.
func Protected(ctx context.Context, options Options, instanceID string) (bool, error) {
	instance, err := options.Instances.Get(ctx, options.DB.Reader(), instanceID)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}

	if err != nil {
		return false, err
	}

	newest, _, err := (&api{Options: options}).latest(ctx, options.DB.Reader(), instanceID, lifecycleKinds()...)

	return protected(instance, newest), err
}

// acceptDeprovision accepts the deletion of an instance, and cancels its other operations except upgrades. why is the reason for
// the deletion if the subaccount was deleted, and otherwise empty. If why is set, the timeline and the audit log contain it, and
// the deletion also removes the service instances in the cluster.
func (a *api) acceptDeprovision(ctx context.Context, tx storage.Tx, instance environment.Instance, why string) (outcome, error) {
	if _, err := a.Operations.Cancel(ctx, tx, instance.ID, reasonDeleted, a.Clock.Now(), environment.UpgradeKinds()...); err != nil {
		return outcome{}, err
	}

	if err := a.cancelBinds(ctx, tx, instance.ID); err != nil {
		return outcome{}, err
	}

	operation, err := environment.NewOperation(environment.KindDeprovision, instance, nil, a.Clock.Now())
	if err == nil {
		operation, err = ordered(ctx, operation, auditlog.Entry{Reason: why, Before: instance.Shown()})
	}

	if err != nil {
		return outcome{}, err
	}

	if why != "" {
		operation.Why = why

		if operation, err = environment.OfDeletedSubaccount(operation); err != nil {
			return outcome{}, err
		}
	}

	return outcome{operation.ID, true}, a.Operations.Accept(ctx, tx, operation)
}

// protected reports whether the instance must not be deleted. newest is the newest operation that creates or deletes the
// instance. The protection begins when the creation has succeeded, so that platforms can delete an instance whose creation failed
// (orphan mitigation). It ends when the instance expires, because the cluster is then removed anyway. A failed deletion can
// always be repeated.
func protected(instance environment.Instance, newest process.Record) bool {
	incomplete := newest.Kind == environment.KindProvision && newest.State != process.Succeeded

	return instance.DeletionProtection && !instance.Expired() && !incomplete && newest.Kind != environment.KindDeprovision
}

// cancelBinds cancels the instance's unfinished bind operations, so that requests that wait for them return immediately. The
// caller holds the lock on the instance, so no new binding can be created.
func (a *api) cancelBinds(ctx context.Context, tx storage.Tx, instanceID string) error {
	creations, err := a.Bindings.Creations(ctx, tx, instanceID)
	if err != nil {
		return err
	}

	for _, operation := range creations {
		if _, err := a.Operations.CancelOne(ctx, tx, operation, reasonDeleted, a.Clock.Now()); err != nil {
			return err
		}
	}

	return nil
}
