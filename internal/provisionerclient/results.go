package provisionerclient

import "github.com/environment-broker/environment-broker/internal/provisionerclient/wire"

// Kind says what a Provisioner can do.
type Kind int32

// The kinds. One of ours knows idempotency keys and has a feed of changes, a former one neither. Unknown lasts until the first answer.
const (
	KindUnknown Kind = iota
	KindOurs
	KindFormer
)

// Caller is on whose behalf a change is ordered.
type Caller struct {
	Tenant string
	// SubAccount may be empty.
	SubAccount string
	// IdempotencyKey is the same for each repetition of one order. It may be empty and has at most 255 printable characters.
	IdempotencyKey string
}

// Operation is what a Provisioner tells about one. Type and State may hold values that are not known here, from a Provisioner
// of another version.
type Operation struct {
	ID        string
	RuntimeID string
	Type      wire.OperationType
	State     wire.OperationState
	// Message says, for people, what goes on.
	Message string
	// LastError is empty when there is none.
	LastError LastError
}

// LastError is why an operation failed or has to try again.
type LastError struct {
	Message   string
	Reason    string
	Component string
}

// Changes are the operations that changed, and the cursor to ask for the next ones with.
type Changes struct {
	Cursor     string
	Operations []Change
}

// Change is an operation that changed, with its state at the time of the answer.
type Change struct {
	OperationID string
	RuntimeID   string
	Type        wire.OperationType
	State       wire.OperationState
}

func operationOf(answer *wire.Operation) Operation {
	if answer == nil {
		return Operation{}
	}

	operation := Operation{
		ID: valueOf(answer.Id), RuntimeID: valueOf(answer.RuntimeID), Type: answer.Operation, State: answer.State,
		Message: valueOf(answer.Message),
	}

	if lastError := answer.LastError; lastError != nil {
		operation.LastError = LastError{
			Message: lastError.ErrMessage, Reason: lastError.Reason, Component: lastError.Component,
		}
	}

	return operation
}

func changesOf(answer *wire.ChangesResult) Changes {
	changes := Changes{Cursor: answer.Cursor}

	for _, change := range answer.Operations {
		if change == nil {
			continue
		}

		changes.Operations = append(changes.Operations, Change{
			OperationID: change.Id, RuntimeID: change.RuntimeID, Type: change.Operation, State: change.State,
		})
	}

	return changes
}

func valueOf(text *string) string {
	if text == nil {
		return ""
	}

	return *text
}
