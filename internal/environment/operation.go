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

	payload, err := json.Marshal(data)
	if err != nil {
		return process.New{}, fmt.Errorf("encoding the data of a new operation: %w", err)
	}

	return process.New{
		ID: id, Kind: kind, InstanceID: instance.ID, Tenant: instance.GlobalAccountID, Description: "Operation created",
		Payload: payload, At: at,
	}, nil
}
