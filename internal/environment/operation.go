package environment

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/process"
)

// NewOperation returns a new operation on the instance.
func NewOperation(kind string, instance Instance, change *Change, at time.Time) (process.New, error) {
	id := uuid.NewString()

	data := Data{Change: change}
	if kind == KindProvision || kind == KindResume {
		data.Provisioning = id // the first step reads the instance
	} else {
		data.Instance = instance
	}

	return newOperation(process.New{ID: id, Kind: kind, InstanceID: instance.ID, Tenant: instance.GlobalAccountID, At: at}, data)
}

// NewBindingOperation returns a new operation on the binding of the instance. It needs nothing of the instance's request, which may hold
// secrets.
func NewBindingOperation(kind, id string, instance Instance, binding Binding, at time.Time) (process.New, error) {
	instance.Request = Request{}

	return newOperation(process.New{
		ID: id, Kind: kind, InstanceID: BindingKey(binding.InstanceID, binding.BindingID), Tenant: instance.GlobalAccountID, At: at,
	}, Data{Instance: instance, Binding: binding})
}

func newOperation(operation process.New, data Data) (process.New, error) {
	payload, err := json.Marshal(data)
	if err != nil {
		return process.New{}, fmt.Errorf("encoding the data of a new operation: %w", err)
	}

	operation.Description, operation.Payload = "Operation created", payload

	return operation, nil
}
