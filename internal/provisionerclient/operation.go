package provisionerclient

import "github.com/environment-broker/environment-broker/internal/provisionerclient/wire"

// Kind is the implementation behind the Provisioner's API. The implementations differ in their features.
type Kind int32

const (
	// KindUnknown lasts until the first answer.
	KindUnknown Kind = iota
	// KindOurs honors idempotency keys and has a feed of changed operations.
	KindOurs
	// KindKyma is the Kyma Provisioner, which has neither.
	KindKyma
)

// Caller identifies the tenant on whose behalf a change is ordered.
type Caller struct {
	// Tenant owns the runtime. The Provisioner does not find runtimes of other tenants. The client sends its label, see package
	// tenancy, which also Kyma Provisioner can use, and the ID itself in a header of its own.
	Tenant string
	// SubAccount may be empty.
	SubAccount string
	// IdempotencyKey is the same for each repetition of one order. It may be empty and has at most 255
	// printable characters.
	IdempotencyKey string
}

// Type is the kind of an operation of the Provisioner, such as Provision. Another version of the Provisioner
// may send unknown ones.
type Type string

// State is the state of an operation of the Provisioner. Another version of the Provisioner may send unknown
// ones: an operation in such a state has not ended.
type State string

// The states that the Provisioner's schema defines.
const (
	StatePending    = State(wire.OperationStatePending)
	StateInProgress = State(wire.OperationStateInprogress)
	StateSucceeded  = State(wire.OperationStateSucceeded)
	StateFailed     = State(wire.OperationStateFailed)
)

// Operation is an operation of the Provisioner, at the time of an answer.
type Operation struct {
	ID        string
	RuntimeID string
	Type      Type
	State     State
	// Message describes the progress for people.
	Message string
	// LastError is zero unless the operation failed or retries.
	LastError LastError
}

// LastError is the reason why an operation failed or retries.
type LastError struct {
	// Message is for people.
	Message string
	// Reason is a code of Gardener or of package failure.
	Reason string
	// Component is the system that caused the error, such as gardener.
	Component string
}

// Changes is a page of the feed: the changed operations and the cursor of the next page.
type Changes struct {
	// Cursor is opaque to the broker. It stays valid as long as the Provisioner keeps the changes after it.
	Cursor     string
	Operations []ChangedOperation
}

// ChangedOperation is an operation that changed, with its state at the time of the answer.
type ChangedOperation struct {
	OperationID string
	RuntimeID   string
	Type        Type
	State       State
}

// operationOf maps an answer. It returns the zero Operation for nil.
func operationOf(answer *wire.Operation) Operation {
	if answer == nil {
		return Operation{}
	}

	operation := Operation{
		ID: valueOf(answer.Id), RuntimeID: valueOf(answer.RuntimeID), Type: Type(answer.Operation), State: State(answer.State),
		Message: valueOf(answer.Message),
	}

	if lastError := answer.LastError; lastError != nil {
		operation.LastError = LastError{
			Message: lastError.ErrMessage, Reason: lastError.Reason, Component: lastError.Component,
		}
	}

	return operation
}

// changesOf maps a page of the feed. The schema allows null in lists, which carries no change.
func changesOf(answer *wire.ChangesResult) Changes {
	changes := Changes{Cursor: answer.Cursor}

	for _, change := range answer.Operations {
		if change == nil {
			continue
		}

		changes.Operations = append(changes.Operations, ChangedOperation{
			OperationID: change.Id, RuntimeID: change.RuntimeID, Type: Type(change.Operation), State: State(change.State),
		})
	}

	return changes
}

// valueOf returns the text, empty for nil.
func valueOf(text *string) string {
	if text == nil {
		return ""
	}

	return *text
}
