package operator

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// textRetryCleanup rejects a retry of a cleanup. A retry would start at the failed stage, but the result may depend on earlier
// stages.
const textRetryCleanup = "A cleanup cannot be retried. Start another one: ebctl leftover cleanup."

// textRetryBind rejects a retry of a bind. The job that removes failed bindings does not know about the retry, and the platform knows
// that its request has failed.
const textRetryBind = "A bind cannot be retried: the broker removes the binding. The platform can send its request again."

// textRetryExpired rejects a retry of a resumption that has not started before the instance expired.
const textRetryExpired = "The instance has expired since this operation was accepted, and cannot be resumed. It can only be deleted."

// textConductor rejects interventions in an operation that conducts an orchestration. Without the operation, nothing would start
// the remaining upgrades of the orchestration.
const textConductor = "The operation conducts an orchestration. Cancel or retry the orchestration instead, with the endpoints under /orchestrations."

// subjects implements operatorserver.Subjects: the subject of the broker's operations is an instance, one of its bindings, or a
// leftover. Operations on orchestrations have no instance.
type subjects struct{ instances *instances.Store }

// Noun returns "instance".
func (subjects) Noun() string { return "instance" }

// Kinds returns the kinds of operations on instances, bindings, leftovers and orchestrations.
func (subjects) Kinds() []string { return environment.AllKinds() }

// IDs returns the instance ID and the binding ID of an operation. bindingID is empty for operations on instances and leftovers.
func (subjects) IDs(record process.Record) (instanceID, bindingID string) {
	if instanceID, _, is := environment.LeftoverOf(record.InstanceID); is && record.Kind == environment.KindCleanup {
		return instanceID, ""
	}

	if record.Kind == environment.KindOrchestrate {
		return "", ""
	}

	instanceID, bindingID, is := environment.BindingOf(record.InstanceID)
	if !is {
		instanceID = record.InstanceID
	}

	return instanceID, bindingID
}

// Describe returns the display names and the plans of the instances.
func (s subjects) Describe(ctx context.Context, ids []string) (map[string]operatorserver.Subject, error) {
	found, err := s.instances.Summaries(ctx, ids)
	if err != nil {
		return nil, err
	}

	described := make(map[string]operatorserver.Subject, len(found))
	for id, instance := range found {
		described[id] = operatorserver.Subject{Name: instance.Name, PlanID: instance.PlanID}
	}

	return described, nil
}

// Lock locks the instance of an operation. If the operation concerns a binding, Lock locks the binding's instance; otherwise, it
// also sets the time of the instance's last change. It returns false if the instance does not exist, and an error for cleanups,
// binds and orchestrations.
func (s subjects) Lock(ctx context.Context, tx storage.Tx, record process.Record, now time.Time) (bool, error) {
	if record.Kind == environment.KindCleanup {
		return false, operatorserver.Conflict(textRetryCleanup)
	}

	if record.Kind == environment.KindBind {
		return false, operatorserver.Conflict(textRetryBind)
	}

	if record.Kind == environment.KindOrchestrate {
		return false, operatorserver.Conflict(textConductor)
	}

	if instanceID, _, is := environment.BindingOf(record.InstanceID); is {
		return s.instances.Lock(ctx, tx, instanceID)
	}

	return s.instances.Touch(ctx, tx, record.InstanceID, now)
}

// Refresh adapts a retry to changes of the instance since the failed operation was accepted: see environment.Data.ForRetry. The retry
// belongs to the account that the instance has now, and the present platforms of the instance see it. The error is a conflict if the
// operation resumes an instance that has expired. Refresh decrypts the row only if the operation is a resumption or contains an update,
// because a deletion must be possible without the keys of the row.
func (s subjects) Refresh(ctx context.Context, tx storage.Tx, retry process.New) (process.New, error) {
	id := retry.InstanceID
	if instanceID, _, is := environment.BindingOf(id); is {
		id = instanceID
	}

	owner, err := s.instances.Owner(ctx, tx, id)
	if err != nil {
		return retry, err
	}

	retry.Tenant, retry.VisibleTo = owner.GlobalAccountID, environment.VisibleTo(owner)

	var data environment.Data
	if err := json.Unmarshal(retry.Payload, &data); err != nil || data.Update == nil && retry.Kind != environment.KindResume {
		return retry, failure.While(err, "decoding the data of operation %s", retry.PredecessorID)
	}

	present, err := s.instances.Get(ctx, tx, id)
	if err != nil {
		return retry, err
	}

	if retry.Kind == environment.KindResume && present.Expired() {
		return retry, operatorserver.Conflict(textRetryExpired)
	}

	if data.Update == nil {
		return retry, nil
	}

	if data, err = data.ForRetry(present); err != nil {
		return retry, err
	}

	retry.Payload, err = json.Marshal(data)

	return retry, failure.While(err, "encoding the data of operation %s", retry.ID)
}

// Select adds the binding_id and leftover_id parameters to the filter. For operations on bindings and leftovers, the stored
// instance ID is a key that combines the instance ID with the binding or leftover ID.
func (subjects) Select(query url.Values, filter *operations.Filter) error {
	bindingID, leftoverID := query.Get("binding_id"), query.Get("leftover_id")

	switch {
	case bindingID == "" && leftoverID == "":
		return nil
	case filter.InstanceID == "":
		return operatorserver.Invalid("binding_id and leftover_id require instance_id.")
	case bindingID != "" && leftoverID != "":
		return operatorserver.Invalid("binding_id and leftover_id cannot be combined.")
	case bindingID != "":
		filter.InstanceID = environment.BindingKey(filter.InstanceID, bindingID)
	default:
		filter.InstanceID = environment.LeftoverKey(filter.InstanceID, leftoverID)
	}

	return nil
}
