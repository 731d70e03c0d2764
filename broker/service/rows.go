package service

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/quota"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/deprovisioning"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/instanceevents"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
)

// rows implements Rows with the stores. It converts their errors to failure.Error. Database errors are transient, so the engine
// retries the step.
type rows struct {
	stores

	clock clock.PassiveClock
}

// Tables are the stores behind Rows. All of them are in the database DB. Leftovers, Objects and Events are only needed for
// deletions and suspensions.
type Tables struct {
	DB         *storage.DB
	Operations *operations.Store
	Instances  *instances.Store
	Bindings   *bindings.Store
	Leftovers  *leftovers.Store
	Objects    *outsideobjects.Store
	Events     *instanceevents.Store
	// Orchestrations is only needed for NewRemoval.
	Orchestrations *orchestrations.Store
	// Quotas checks updates that change an instance's account or plan. The zero value has no quotas.
	Quotas quota.Checker
}

// NewRows returns Rows that are backed by the tables.
func NewRows(tables Tables, clock clock.PassiveClock) Rows {
	return rows{stores{
		db: tables.DB, operations: tables.Operations, instances: tables.Instances, bindings: tables.Bindings,
		leftovers: tables.Leftovers, objects: tables.Objects, events: tables.Events, quotas: tables.Quotas,
	}, clock}
}

// Find returns the instance as it is currently stored. If it does not exist, the error is of kind Permanent and has the reason
// failure.ReasonNotFound.
func (r rows) Find(ctx context.Context, id string) (environment.Instance, error) {
	instance, err := r.instances.Get(ctx, r.db.Reader(), id)

	return instance, explain(err, "the instance")
}

// SetRuntime stores the ID of the instance's runtime. It is called once the Provisioner has accepted the order.
func (r rows) SetRuntime(ctx context.Context, by process.Record, instance environment.Instance, runtimeID string) error {
	return explain(r.instances.SetRuntime(ctx, by, instance, runtimeID), "the runtime of the instance")
}

// SetDashboardURL stores the URL of the runtime's console as the dashboard of the instance.
func (r rows) SetDashboardURL(ctx context.Context, by process.Record, instance environment.Instance, address string) error {
	return explain(r.instances.SetDashboardURL(ctx, by, instance, address), "the dashboard of the instance")
}

// Delete removes the instance and its bindings. Its operations remain as history. If the deletion has not completed all steps, or
// if an object in a system that is turned off is still recorded, the instance becomes a leftover, and its objects belong to the
// leftover.
func (r rows) Delete(by process.Record, instance environment.Instance, notCompleted []string) process.Effect {
	return operations.Effect(func(ctx context.Context, tx storage.Tx) error {
		if err := r.instances.Delete(ctx, tx, instance); err != nil {
			return explain(err, "the instance")
		}

		if err := r.events.Remove(ctx, tx, instance.ID); err != nil {
			return explain(err, "the events of the instance")
		}

		// If the row was removed before, the ID and the objects may already belong to another instance.
		reused, err := r.instances.Exists(ctx, tx, instance.ID)
		if err != nil {
			return explain(err, "the instance")
		}

		var left []environment.OutsideObject
		if !reused {
			left, err = r.objects.Recorded(ctx, tx, instance.ID)
		}

		if err != nil || len(notCompleted)+len(left) == 0 {
			return explain(err, "the objects of the instance in other systems")
		}

		leftover := environment.NewLeftover(by, instance, slices.Concat(notCompleted, deprovisioning.StepsFor(left)), r.clock.Now())
		if err := r.leftovers.Add(ctx, tx, leftover); err != nil || reused {
			return explain(err, "the leftover of the instance")
		}

		return explain(r.objects.Move(ctx, tx, instance.ID, leftover.Key()), "the objects of the instance in other systems")
	})
}

// Cleaned records the result of a cleanup. If the cleanup has completed all steps and no object is recorded anymore, the leftover
// is removed.
func (r rows) Cleaned(by process.Record, notCompleted []string) process.Effect {
	return operations.Effect(func(ctx context.Context, tx storage.Tx) error {
		_, id, is := environment.LeftoverOf(by.InstanceID)
		if !is {
			return failure.New(failure.Internal, "operation %s is not the cleanup of a leftover", by.ID)
		}

		left, err := r.objects.Recorded(ctx, tx, by.InstanceID)
		if err != nil {
			return explain(err, "the objects of the leftover in other systems")
		}

		steps := slices.Compact(slices.Sorted(slices.Values(slices.Concat(notCompleted, deprovisioning.StepsFor(left)))))
		if len(steps) > 0 {
			return explain(r.leftovers.SetSteps(ctx, tx, id, steps, by.ID), "the leftover")
		}

		return explain(r.leftovers.Remove(ctx, tx, id), "the leftover")
	})
}

// RuntimeUser returns the ID of the instance that uses the runtime of a leftover, or "" if there is none. former is the instance of
// the leftover. An instance with the Shoot of the leftover uses the runtime if it has the same runtime ID and is not suspended. While
// the instance has no runtime ID yet, because its runtime is being created, the error is of kind failure.Waiting: it may get the
// runtime of the leftover.
func (r rows) RuntimeUser(ctx context.Context, former environment.Instance) (string, error) {
	listed, err := r.instances.List(ctx, instances.Filter{ShootNames: []string{former.ShootName}, Limit: 1})
	if err != nil || len(listed) == 0 {
		return "", explain(err, "the instance that uses the runtime")
	}

	instance := listed[0].Instance

	past, err := r.operations.OfInstance(ctx, r.db.Reader(), instance.ID)
	if err != nil {
		return "", explain(err, "the operations of the instance")
	}

	switch phase := environment.PhaseOf(past); {
	case phase == environment.Suspended:
		return "", nil
	case instance.RuntimeID == "" && (phase == environment.Resuming || phase == environment.Creating):
		return "", failure.New(failure.Waiting, "the runtime of instance %s is being created, and may be the leftover's", instance.ID)
	case instance.RuntimeID != "" && instance.RuntimeID == former.RuntimeID:
		return instance.ID, nil
	default:
		return "", nil
	}
}

// Reused removes a leftover whose runtime the instance uses. The objects of the leftover in other systems become objects of the
// instance, so its deletion removes them. If the instance is gone, the error is transient: the next attempt finds no user of the
// runtime.
func (r rows) Reused(by process.Record, instanceID string) process.Effect {
	return operations.Effect(func(ctx context.Context, tx storage.Tx) error {
		_, id, is := environment.LeftoverOf(by.InstanceID)
		if !is {
			return failure.New(failure.Internal, "operation %s is not the cleanup of a leftover", by.ID)
		}

		exists, err := r.instances.Lock(ctx, tx, instanceID)
		if err != nil {
			return explain(err, "the instance that uses the runtime")
		}

		if !exists {
			return failure.New(failure.Transient, "instance %s no longer uses the runtime", instanceID)
		}

		if err := r.objects.Return(ctx, tx, by.InstanceID, instanceID); err != nil {
			return explain(err, "the objects of the leftover in other systems")
		}

		return explain(r.leftovers.Remove(ctx, tx, id), "the leftover")
	})
}

// WantsBinding reports whether the binding exists and is not being removed. The creation of a binding must not
// issue credentials after the removal has started.
func (r rows) WantsBinding(ctx context.Context, id string) (bool, error) {
	wanted, err := r.bindings.Wanted(ctx, id)

	return wanted, explain(err, "the binding")
}

// SaveAccess stores the credentials of the binding and marks it as ready.
func (r rows) SaveAccess(binding environment.Binding, access environment.Access) process.Effect {
	return operations.Effect(func(ctx context.Context, tx storage.Tx) error {
		return explain(r.bindings.SaveAccess(ctx, tx, binding, access), "the binding")
	})
}

// RuntimeEnding reports whether the runtime of the instance is being removed or was removed, according to the newest
// operation that creates or removes the runtime.
func (r rows) RuntimeEnding(ctx context.Context, instanceID string) (bool, error) {
	past, err := r.operations.OfInstance(ctx, r.db.Reader(), instanceID)

	return environment.PhaseOf(past).WithoutRuntime(), explain(err, "the operations of the instance")
}

// RemoveBinding removes the row of the binding. It is called after the ServiceAccount was removed from the cluster.
func (r rows) RemoveBinding(id string) process.Effect {
	return operations.Effect(func(ctx context.Context, tx storage.Tx) error {
		return explain(r.bindings.Delete(ctx, tx, id), "the binding")
	})
}

// Update applies the update to the row of the instance. The error is of kind Quota if the update would exceed a quota, or if the
// plan allows one instance per account and the account now has another instance.
func (r rows) Update(instance environment.Instance, update environment.Update) process.Effect {
	return r.record(instance, update.Apply)
}

// Suspend records that the instance no longer has a runtime. If the request contained an update, Suspend also
// applies it. If the suspension has not completed the removal of the runtime, the runtime becomes a leftover.
func (r rows) Suspend(by process.Record, instance environment.Instance, update *environment.Update, notCompleted []string) process.Effect {
	suspended := r.record(instance, func(present environment.Instance) (environment.Instance, error) {
		present.Suspended, present.RuntimeID = true, ""

		if update == nil {
			return present, nil
		}

		return update.Apply(present)
	})

	return operations.Effect(func(ctx context.Context, tx storage.Tx) error {
		if err := suspended(ctx, tx); err != nil || len(notCompleted) == 0 {
			return err
		}

		return explain(r.leftovers.Add(ctx, tx, environment.NewLeftover(by, instance, notCompleted, r.clock.Now())), "the leftover of the instance")
	})
}

// Resume records that the instance has a runtime again.
func (r rows) Resume(instance environment.Instance) process.Effect {
	return r.record(instance, func(present environment.Instance) (environment.Instance, error) {
		present.Suspended = false

		return present, nil
	})
}

// record changes the current row of the instance, unless a quota forbids the change. It does nothing if the row is gone or belongs to
// a newer instance with the same ID.
func (r rows) record(known environment.Instance, change func(environment.Instance) (environment.Instance, error)) operations.Effect {
	return func(ctx context.Context, tx storage.Tx) error {
		present, err := r.instances.Hold(ctx, tx, known, r.clock.Now())
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}

		if err != nil {
			return explain(err, "the instance")
		}

		changed, err := change(present)
		if err != nil {
			return explain(err, "the instance")
		}

		err = r.quotas.Change(ctx, tx, present, changed)
		if exceeded, is := errors.AsType[*quota.ExceededError](err); is {
			return exceeded.Failure()
		}

		if err != nil {
			return explain(err, "the instances that count towards the quota")
		}

		err = r.instances.Update(ctx, tx, changed)
		if storage.IsDuplicate(err) { // Exclusive is the only unique column that changes
			return failure.Wrap(failure.Quota, err,
				"account %s now has another instance of plan %s, but may have only one: delete the other instance, then retry",
				changed.GlobalAccountID, changed.PlanName).WithReason(failure.ReasonAlreadyExists, failure.ComponentBroker)
		}

		return explain(err, "the instance")
	}
}

// LastProvisioning returns the data of the newest operation that may have ordered the runtime of the instance. If the row of the
// instance has a runtime ID for the same Shoot, this ID replaces the runtime ID in the data, which can be outdated. The result is
// empty if the runtime was removed.
func (r rows) LastProvisioning(ctx context.Context, instanceID string) (environment.Data, error) {
	data, err := r.ordering(ctx, instanceID)
	if err != nil {
		return data, err
	}

	instance, err := r.Find(ctx, instanceID)
	if failure.Of(err).Reason == failure.ReasonNotFound {
		return data, nil // the deletion has already removed the row
	}

	if instance.RuntimeID != "" && instance.ShootName == data.Instance.ShootName {
		data.Instance.RuntimeID = instance.RuntimeID
	}

	return data, err
}

// ordering returns the data of the operation that ordered the runtime. It skips operations that were canceled
// before they ordered a runtime: an earlier operation may have ordered one.
func (r rows) ordering(ctx context.Context, instanceID string) (environment.Data, error) {
	past, err := r.operations.OfInstance(ctx, r.db.Reader(), instanceID)
	if err != nil {
		return environment.Data{}, explain(err, "the operations of the instance")
	}

	var newest environment.Data

	for _, operation := range past {
		if removed(operation) {
			break
		}

		if operation.Kind != environment.KindProvision && operation.Kind != environment.KindResume {
			continue
		}

		data, err := r.dataOf(ctx, operation.ID)
		if err != nil || data.Ordered {
			return data, err
		}

		if newest.Provisioning == "" {
			newest = data
		}
	}

	return newest, nil
}

// removed reports whether the operation has removed the runtimes of all earlier operations.
func removed(operation process.Record) bool {
	return operation.State == process.Succeeded &&
		(operation.Kind == environment.KindSuspend || operation.Kind == environment.KindDeprovision)
}

// dataOf returns the decrypted data of an operation. If the encryption key was removed from the configuration, the error is
// transient, because the key can be added again.
func (r rows) dataOf(ctx context.Context, operationID string) (environment.Data, error) {
	var data environment.Data

	payload, err := r.operations.Payload(ctx, r.db.Reader(), operationID)
	if errors.Is(err, operations.ErrSealed) {
		return data, failure.Wrap(failure.Transient, err, "the data of the provisioning operation cannot be decrypted: its key is not in APP_DATABASE_SECRET_KEYS").
			WithReason(failure.ReasonInternal, failure.ComponentBrokerDatabase)
	}

	if err != nil {
		return data, explain(err, "the data of the provisioning operation")
	}

	if err := json.Unmarshal(payload, &data); err != nil {
		return data, failure.Wrap(failure.Internal, err, "decoding the data of the provisioning operation")
	}

	return data, nil
}

// explain converts a database error to a failure.Error. subject names the affected rows. It returns nil if err is nil.
func explain(err error, subject string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrNotFound):
		return failure.Wrap(failure.Permanent, err, "%s is no longer in the database", subject).
			WithReason(failure.ReasonNotFound, failure.ComponentBrokerDatabase)
	default:
		return failure.Wrap(failure.Transient, err, "%s could not be read or written because of a database error", subject).
			WithReason(failure.ReasonInternal, failure.ComponentBrokerDatabase)
	}
}
