package environment

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/process"
)

// The kinds of operations. They are stored, and shown by both APIs: never rename one. Each kind has a process
// in broker/service.Processes.
const (
	KindProvision   = "provision"
	KindDeprovision = "deprovision"
	KindUpdate      = "update"
	// KindSuspend removes the runtime and keeps the instance; KindResume creates the runtime again.
	KindSuspend = "suspend"
	KindResume  = "resume"
	// KindBind and KindUnbind have queues of their own: they run concurrently with the operations of the instance.
	KindBind   = "bind"
	KindUnbind = "unbind"
)

// Kinds lists the kinds of operations on an instance as a whole.
func Kinds() []string {
	return []string{KindProvision, KindDeprovision, KindUpdate, KindSuspend, KindResume}
}

// BindingKinds lists the kinds of operations on a binding.
func BindingKinds() []string { return []string{KindBind, KindUnbind} }

// NewOperation returns a new operation on the instance with a random ID. The update may be nil. The caller adds
// the requester and stores the operation in the transaction of the decision.
//
// A provisioning or resumption gets no copy of the instance, because its row may change before the operation
// starts. The operation's ID is the idempotency key of its order.
func NewOperation(kind string, instance Instance, update *Update, at time.Time) (process.New, error) {
	id := uuid.NewString()

	data := Data{Update: update}
	if kind == KindProvision || kind == KindResume {
		data.Provisioning = id // the first step loads the instance
	} else {
		data.Instance = instance
	}

	return newOperation(process.New{ID: id, Kind: kind, InstanceID: instance.ID, Tenant: instance.GlobalAccountID, At: at}, data)
}

// NewBindingOperation returns a new operation with the ID on the binding of the instance. The data lacks the
// instance's request, which may hold secrets and which no step of a binding needs.
func NewBindingOperation(kind, id string, instance Instance, binding Binding, at time.Time) (process.New, error) {
	instance.Request = Request{}

	return newOperation(process.New{
		ID: id, Kind: kind, InstanceID: BindingKey(binding.InstanceID, binding.BindingID), Tenant: instance.GlobalAccountID, At: at,
	}, Data{Instance: instance, Binding: binding})
}

// newOperation adds the encoded data to an operation. The data is stored encrypted.
func newOperation(operation process.New, data Data) (process.New, error) {
	payload, err := json.Marshal(data)
	if err != nil {
		return process.New{}, fmt.Errorf("encoding a new operation: %w", err)
	}

	operation.Description, operation.Payload = "Operation created", payload

	return operation, nil
}
