package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/deprovisioning"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// updateContext is the input of the decision on an update. It is read inside the transaction.
type updateContext struct {
	updateRequest
	environment.Instance

	phase environment.Phase
	// update contains the changes that the request makes to the instance.
	update environment.Update
	// updated is the instance after the update.
	updated environment.Instance
	// timeChosen reports whether the update has chosen the time of an upgrade, which the audit log has already recorded.
	timeChosen bool
}

// decideUpdate decides on an update inside the transaction. It touches the instance first, so that concurrent
// requests run one after another. It does not check parameters, because other writes may wait for the transaction. If
// request.resolution is missing, or belongs to another plan or another state of the instance, the error is an
// unresolvedError.
func (a *api) decideUpdate(ctx context.Context, tx storage.Tx, request updateRequest) (outcome, error) {
	var err error
	if request.instanceID, err = a.lookupID(ctx, tx, request.instanceID); err != nil {
		return outcome{}, err
	}

	timeChosen, untimely, err := a.chooseUpgradeTime(ctx, tx, request)
	if err != nil {
		return outcome{}, err
	}

	present, err := a.Instances.Touch(ctx, tx, request.instanceID, a.Clock.Now())
	if err != nil {
		return outcome{}, err
	}

	if !present {
		return outcome{}, notFound(textNoInstance)
	}

	instance, err := a.Instances.Get(ctx, tx, request.instanceID)
	if err != nil {
		return outcome{}, err
	}

	if err := checkReached(ctx, instance); err != nil {
		return outcome{}, err
	}

	if request.planID == "" {
		a.notePlan(ctx, instance.PlanID)
	}

	past, err := a.Operations.OfInstance(ctx, tx, instance.ID)
	if err != nil {
		return outcome{}, err
	}

	// Check the plan before the phase and unfinished operations, so that an invalid plan is always reported as such.
	target, err := a.targetPlan(request, instance)
	if err != nil {
		return outcome{}, err
	}

	if unfinished := environment.Unfinished(past); len(unfinished) > 0 {
		return a.repeatedUpdate(ctx, tx, request, instance, unfinished)
	}

	u := updateContext{updateRequest: request, Instance: instance, phase: environment.PhaseOf(past), timeChosen: timeChosen}
	if u.update, err = a.resolveUpdate(request, instance, target); err != nil {
		return outcome{}, err
	}

	if u.phase == environment.Suspended && u.asks(true) {
		u.update.Cluster = target.Recreate(u.update.Cluster)
	}

	if u.updated, err = u.update.Apply(instance); err != nil {
		return outcome{}, err
	}

	if err := refusesTime(untimely, instance, u.updated); err != nil {
		return outcome{}, err
	}

	if u.update.Exclusive != instance.Exclusive {
		if err := a.checkQuota(ctx, tx, target, u.update.GlobalAccountID, instance.ID); err != nil {
			return outcome{}, err
		}
	}

	// If the update needs an operation, the row changes only when the operation succeeds. The quotas are then checked again.
	if err := quotaRefusal(a.Quotas.Change(ctx, tx, instance, u.updated)); err != nil {
		return outcome{}, err
	}

	return a.applyUpdate(ctx, tx, u)
}

// applyUpdate accepts the operation that the update needs, or updates the row if no operation is needed. A
// resumption updates the row immediately, because its steps order the new runtime from the row. Other operations
// update the row when they succeed: after a failure, the row still describes the runtime.
func (a *api) applyUpdate(ctx context.Context, tx storage.Tx, u updateContext) (outcome, error) {
	if err := a.checkUpdate(u); err != nil {
		return outcome{}, err
	}

	switch {
	case u.asks(false) && u.phase != environment.Suspended:
		return a.acceptUpdate(ctx, tx, environment.KindSuspend, u)
	case u.asks(true) && u.phase != environment.Active:
		return a.acceptResumption(ctx, tx, u)
	case u.phase == environment.Active && !equalJSON(u.update.Cluster, u.Request.Cluster):
		return a.acceptUpdate(ctx, tx, environment.KindUpdate, u)
	case equalJSON(u.updated, u.Instance):
		return outcome{}, nil
	default:
		return outcome{}, a.updateRow(ctx, tx, u)
	}
}

// acceptResumption updates the row and accepts a resumption. It returns a ConcurrencyError while the former runtime is a leftover: the
// new order has the same Shoot name, so the instance would get the former runtime, and the cleanup of the leftover would remove it. The
// transaction has locked the instance, so no suspension can add a leftover, and no cleanup starts without one.
func (a *api) acceptResumption(ctx context.Context, tx storage.Tx, u updateContext) (outcome, error) {
	former, err := a.Leftovers.OfShoots(ctx, tx, []string{u.ShootName})
	if err != nil {
		return outcome{}, err
	}

	if slices.ContainsFunc(former, func(each environment.Leftover) bool { return deprovisioning.RemovesRuntime(each.Steps) }) {
		return outcome{}, unprocessable(codeConcurrency, textFormerCluster)
	}

	if err := a.Instances.Update(ctx, tx, u.updated); err != nil {
		return outcome{}, err
	}

	return a.acceptUpdate(ctx, tx, environment.KindResume, u)
}

// updateRow applies an update that does not affect the runtime, such as a new context, and records it in the audit
// log, unless it only chooses the time of an upgrade. If the account or the plan changes, the renewal of the kubeconfig for
// Lifecycle Manager is due, because it also updates the labels of the Kyma resource.
func (a *api) updateRow(ctx context.Context, tx storage.Tx, u updateContext) error {
	if err := a.Instances.Update(ctx, tx, u.updated); err != nil {
		return err
	}

	if u.PlanID != u.updated.PlanID || u.GlobalAccountID != u.updated.GlobalAccountID || u.SubAccountID != u.updated.SubAccountID {
		if err := a.Objects.RequestRenewal(ctx, tx, u.ID, []string{environment.SystemLifecycleManager}, a.Clock.Now()); err != nil {
			return err
		}
	}

	entry := auditlog.Entry{Action: auditlog.ActionUpdate, InstanceID: u.ID, Status: http.StatusOK}
	entry.Before, entry.After = auditlog.Difference(u.Shown(), u.updated.Shown())

	if u.timeChosen && len(entry.Before)+len(entry.After) == 0 {
		return nil
	}

	return a.Recorder.Record(ctx, tx, entry)
}

// checkUpdate rejects updates that the phase of the instance does not allow. Updates of the context alone are
// allowed in most phases: platforms send them to all instances, for example after an organization was renamed.
func (a *api) checkUpdate(u updateContext) error {
	contextOnly := u.changesContextOnly()

	switch {
	case u.phase == environment.CreationFailed:
		return unprocessable("", textProvisionFailed)
	case u.phase == environment.DeletionFailed:
		return unprocessable("", textDeletionFailed)
	case u.Expired() && (u.asks(true) || !contextOnly):
		return unprocessable("", textExpired)
	case u.asks(false) && u.phase != environment.Suspended:
		if !a.Periods.Has(u.PlanName) {
			return unprocessable("", fmt.Sprintf(textNotSuspendable, u.PlanName))
		}
	case u.phase == environment.SuspensionFailed && (u.asks(true) || !contextOnly):
		return unprocessable("", textSuspensionOpen)
	case u.phase == environment.ResumptionFailed && !contextOnly:
		return unprocessable("", textResumptionOpen)
	}

	return nil
}

// changesContextOnly reports whether the update changes nothing but the context, and the account and the credentials for Service
// Manager, which are part of the context. Parameters may be present: some platforms repeat all parameters in each update.
func (u updateContext) changesContextOnly() bool {
	before, after := u.Request.Cluster, u.update.Cluster
	before.ServiceManager, after.ServiceManager = nil, nil

	return u.PlanID == u.update.PlanID && u.MaintenanceVersion == u.update.MaintenanceVersion && equalJSON(before, after) &&
		u.DeletionProtection == u.updated.DeletionProtection && bytes.Equal(u.Request.Parameters, u.updated.Request.Parameters)
}

// acceptUpdate accepts an operation of the given kind. The operation's data contains the update, except for a
// resumption, whose update is already in the instance's row.
func (a *api) acceptUpdate(ctx context.Context, tx storage.Tx, kind string, u updateContext) (outcome, error) {
	if !u.acceptsIncomplete {
		return outcome{}, asyncRequired()
	}

	update := &u.update
	if kind == environment.KindResume {
		update = nil
	}

	operation, err := a.newOperation(ctx, kind, &u.Instance, &u.updated, update)
	if err != nil {
		return outcome{}, err
	}

	return outcome{operation.ID, true}, a.Operations.Accept(ctx, tx, operation)
}

// repeatedUpdate handles an update during an unfinished operation. If the operation already makes all requested
// changes, the platform gets that operation. Otherwise it gets a ConcurrencyError and repeats the update later.
func (a *api) repeatedUpdate(ctx context.Context, tx storage.Tx, request updateRequest, instance environment.Instance,
	unfinished []process.Record,
) (outcome, error) {
	running := unfinished[0]

	conflicting := map[string]bool{
		environment.KindProvision:   true,
		environment.KindDeprovision: true,
		environment.KindUpdate:      request.asks(false),
		environment.KindSuspend:     request.asks(true),
		environment.KindResume:      request.asks(false),

		environment.KindUpgradeKyma: true, environment.KindUpgradeCluster: true,
	}
	if conflicting[running.Kind] || len(unfinished) > 1 {
		return outcome{}, concurrent()
	}

	after, err := a.instanceAfter(ctx, tx, instance, running)
	if err != nil {
		return outcome{}, err
	}

	// The request suits the plan before the running update, so it is rejected only because of this update.
	target, err := a.targetPlan(request, after)
	if err != nil {
		return outcome{}, concurrent()
	}

	update, err := a.resolveUpdate(request, after, target)
	if err != nil {
		return outcome{}, err
	}

	requested, err := update.Apply(after)

	switch {
	case err != nil:
		return outcome{}, err
	case !equalJSON(requested, after):
		return outcome{}, concurrent()
	case !request.acceptsIncomplete:
		return outcome{}, asyncRequired()
	default:
		return outcome{operation: running.ID}, nil
	}
}

// instanceAfter returns the instance as it will be after the running operation: it applies the update in the
// operation's data.
func (a *api) instanceAfter(ctx context.Context, tx storage.Tx, instance environment.Instance, running process.Record,
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
