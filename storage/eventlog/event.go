package eventlog

import (
	"net/url"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
)

// Type is the type of an event.
type Type string

// The types of events. The triggers in the migrations write all events except MaintenanceStarted.
const (
	OperationAccepted  Type = "operation.accepted"
	OperationSucceeded Type = "operation.succeeded"
	OperationFailed    Type = "operation.failed"
	OperationCanceled  Type = "operation.canceled"

	// MaintenanceStarted is added by StartMaintenance. There is no event for the end of the maintenance: it ends with the operation.
	MaintenanceStarted Type = "maintenance.started"

	InstanceCreated   Type = "instance.created"
	InstanceUpdated   Type = "instance.updated"
	InstanceSuspended Type = "instance.suspended"
	InstanceResumed   Type = "instance.resumed"
	InstanceExpired   Type = "instance.expired"
	InstanceDeleted   Type = "instance.deleted"

	OrchestrationStarted  Type = "orchestration.started"
	OrchestrationWave     Type = "orchestration.wave"
	OrchestrationPaused   Type = "orchestration.paused"
	OrchestrationResumed  Type = "orchestration.resumed"
	OrchestrationFinished Type = "orchestration.finished"
)

// Types returns all types.
func Types() []Type {
	return []Type{
		OperationAccepted, OperationSucceeded, OperationFailed, OperationCanceled,
		InstanceCreated, InstanceUpdated, InstanceSuspended, InstanceResumed, InstanceExpired, InstanceDeleted,
		OrchestrationStarted, OrchestrationWave, OrchestrationPaused, OrchestrationResumed, OrchestrationFinished,
		MaintenanceStarted,
	}
}

// Event is a change that has been committed. Fields that do not apply to its type are empty.
type Event struct {
	// Position is the position of the event in the log. ID stays unique even after the database is restored from a backup.
	Position int64
	ID       string
	Type     Type
	// At is the time of the change. For a deletion, it is the time at which the event was published to the log.
	At time.Time

	// InstanceID is also set for operations on the instance's bindings and leftovers. BindingID is set for operations on a binding.
	InstanceID      string
	BindingID       string
	OrchestrationID string
	OperationID     string
	// Kind is the kind of the operation. For an orchestration, it is the kind of the upgrades that it starts.
	Kind string
	// Account is the global account to which the instance or operation belongs.
	Account string
	Plan    string
	Region  string
	// State is the state of an orchestration, and Wave is its current wave.
	State string
	Wave  int
	// Reason and Component classify the error of a failed operation.
	Reason    string
	Component string
}

// newRow is a row of new_events.
type newRow struct {
	Seq         int64        `db:"seq"`
	ID          string       `db:"id"`
	Type        string       `db:"type"`
	Object      string       `db:"object"`
	OperationID string       `db:"operation_id"`
	Kind        string       `db:"kind"`
	Account     string       `db:"account"`
	Plan        string       `db:"plan"`
	Region      string       `db:"region"`
	State       string       `db:"state"`
	Reason      string       `db:"reason"`
	Component   string       `db:"component"`
	Wave        int          `db:"wave"`
	HappenedAt  storage.Time `db:"happened_at"`
}

// event converts the row to an Event without a position. now is the time of the event if the row has none.
func (r newRow) event(now time.Time) Event {
	event := Event{
		ID: r.ID, Type: Type(r.Type), At: r.HappenedAt.Time, OperationID: r.OperationID, Kind: r.Kind,
		Account: r.Account, Plan: r.Plan, Region: r.Region, State: r.State, Wave: r.Wave, Reason: r.Reason, Component: r.Component,
	}

	if event.At.IsZero() {
		event.At = now
	}

	switch {
	case strings.HasPrefix(r.Type, "orchestration."):
		event.OrchestrationID = r.Object
	case r.OperationID == "":
		event.InstanceID = r.Object
	default:
		event.InstanceID, event.BindingID = split(r.Object)
	}

	return event
}

// split returns the instance ID and, for a binding, the binding ID in the object column of an operation's event.
func split(object string) (instanceID, bindingID string) {
	if instanceID, bindingID, is := environment.BindingOf(object); is {
		return instanceID, bindingID
	}

	if instanceID, _, is := environment.LeftoverOf(object); is {
		return instanceID, ""
	}

	return object, ""
}

// Row is a row of the events table, for stores that join it with their own tables.
type Row struct {
	Position        int64        `db:"position"`
	ID              string       `db:"id"`
	Type            string       `db:"type"`
	InstanceID      string       `db:"instance_id"`
	BindingID       string       `db:"binding_id"`
	OrchestrationID string       `db:"orchestration_id"`
	OperationID     string       `db:"operation_id"`
	Kind            string       `db:"kind"`
	Account         string       `db:"account"`
	Plan            string       `db:"plan"`
	Region          string       `db:"region"`
	State           string       `db:"state"`
	Reason          string       `db:"reason"`
	Component       string       `db:"component"`
	Wave            int          `db:"wave"`
	HappenedAt      storage.Time `db:"happened_at"`
}

// columns lists the columns of Row.
const columns = `position, id, type, instance_id, binding_id, orchestration_id, operation_id, kind, account, plan, region, state, reason,
	component, wave, happened_at`

// JoinedColumns lists the columns of Row, for queries that join the events with tables that have columns of the same names.
const JoinedColumns = `events.position, events.id, type, instance_id, binding_id, orchestration_id, operation_id, kind, account, plan, region,
	state, reason, component, wave, happened_at`

// Event converts the row.
func (r Row) Event() Event {
	return Event{
		Position: r.Position, ID: r.ID, Type: Type(r.Type), At: r.HappenedAt.Time, InstanceID: r.InstanceID, BindingID: r.BindingID,
		OrchestrationID: r.OrchestrationID, OperationID: r.OperationID, Kind: r.Kind, Account: r.Account, Plan: r.Plan, Region: r.Region,
		State: r.State, Wave: r.Wave, Reason: r.Reason, Component: r.Component,
	}
}

// textColumns is the number of text columns in columns. They follow the position column.
const textColumns = 13

// texts returns the values of the text columns, in the order of the columns.
func (e Event) texts() [textColumns]string {
	return [textColumns]string{
		e.ID, string(e.Type), e.InstanceID, e.BindingID, e.OrchestrationID, e.OperationID, e.Kind, e.Account, e.Plan, e.Region, e.State,
		e.Reason, e.Component,
	}
}

// arguments returns the values of all columns, in the order of columns.
func (e Event) arguments() []any {
	args := []any{e.Position}
	for _, text := range e.texts() {
		args = append(args, text)
	}

	return append(args, e.Wave, storage.At(e.At))
}

// Subject returns a path that identifies the changed object. Events with the same subject are published in the order of the
// changes.
func (e Event) Subject() string {
	if e.OrchestrationID != "" {
		return "orchestrations/" + url.PathEscape(e.OrchestrationID)
	}

	return "runtimes/" + url.PathEscape(e.InstanceID)
}
