package provisionerclient

import "github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"

// Kind identifies the implementation of the Provisioner's API. The implementations differ in their features.
type Kind int32

const (
	// KindUnknown is the kind until the first response.
	KindUnknown Kind = iota
	// KindOurs honors idempotency keys and has a feed of changed operations.
	KindOurs
	// KindKyma is the Kyma Provisioner, which has neither idempotency keys nor a feed.
	KindKyma
)

// Caller identifies the tenant on whose behalf the client calls the Provisioner.
type Caller struct {
	// Tenant is the ID of the runtime's owner. The Provisioner does not find runtimes of other tenants. The client sends the
	// label of the ID (see package tenancy), which the Kyma Provisioner also accepts, and the ID itself in a separate header.
	Tenant string
	// SubAccount is the subaccount of the runtime's owner. It may be empty.
	SubAccount string
	// IdempotencyKey identifies an order. All repetitions of an order have the same key. The key may be empty, and has at most
	// 255 printable characters.
	IdempotencyKey string
}

// Type is the kind of an operation of the Provisioner, such as Provision. Other versions of the Provisioner may send unknown
// types.
type Type string

// State is the state of an operation of the Provisioner. Other versions of the Provisioner may send unknown states. An
// operation in an unknown state has not ended.
type State string

// The states that the Provisioner's schema defines.
const (
	StatePending    = State(wire.OperationStatePending)
	StateInProgress = State(wire.OperationStateInprogress)
	StateSucceeded  = State(wire.OperationStateSucceeded)
	StateFailed     = State(wire.OperationStateFailed)
)

// Operation is the state of a Provisioner operation at the time of the response.
type Operation struct {
	ID        string
	RuntimeID string
	Type      Type
	State     State
	// Message describes the progress for operators.
	Message string
	// LastError is zero unless the operation failed or is retrying.
	LastError LastError
}

// LastError describes why an operation failed or is retrying.
type LastError struct {
	// Message is the Provisioner's text, for operators.
	Message string
	// Reason is a code of Gardener or of package failure.
	Reason string
	// Component is the system that caused the error, such as gardener.
	Component string
}

// Changes is a page of the feed: the changed operations and the cursor of the next page.
type Changes struct {
	// Cursor is opaque to the broker. It stays valid as long as the Provisioner retains the changes that follow it.
	Cursor     string
	Operations []ChangedOperation
}

// ChangedOperation is an operation that changed, with its state as of the time of the response.
type ChangedOperation struct {
	OperationID string
	RuntimeID   string
	Type        Type
	State       State
}

// operationOf converts an operation of the response. It returns the zero Operation for nil.
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
			Message: lastError.ErrMessage, Reason: codeOf(lastError.Reason), Component: codeOf(lastError.Component),
		}
	}

	return operation
}

// started returns the operation of a response to an order. If the response lacks its ID, started returns an error.
func (c *call) started(answer *wire.Operation) (Operation, error) {
	operation := operationOf(answer)
	if operation.ID == "" {
		return Operation{}, c.missing("the ID of the operation")
	}

	return operation, nil
}

// changesOf converts a page of the feed. It skips nulls, which the schema allows in lists.
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

// valueOf returns the text, or an empty string for nil.
func valueOf(text *string) string {
	if text == nil {
		return ""
	}

	return *text
}
