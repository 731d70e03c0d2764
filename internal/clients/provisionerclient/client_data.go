package provisionerclient

import (
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
)

// clientData returns the instance in the form that the Provisioner stores with its runtime. If the broker's database record of
// the instance is lost, the broker can restore it from this form; see ParseClientData. The form omits the context of the
// request, because platforms may put credentials there. clientData returns nil if the instance is too large, or if the
// Provisioner does not support client data.
func (c *Client) clientData(instance environment.Instance) *string {
	if c.noClientData.Load() {
		return nil
	}

	instance.Request.Context = nil

	encoded, err := json.Marshal(instance)
	if err != nil || utf8.RuneCount(encoded) > bounds.ClientData {
		return nil // an order must not fail because of its client data
	}

	return new(string(encoded))
}

// ParseClientData returns the instance in the client data of a runtime. The instance has no context and, if the runtime has not
// changed since its order, no RuntimeID. If there is no data, the error is of kind failure.NotFound.
func ParseClientData(text string) (environment.Instance, error) {
	if text == "" {
		return environment.Instance{}, failure.New(failure.NotFound,
			"the Provisioner has no instance data for the runtime, which was ordered by an earlier release or another client")
	}

	var instance environment.Instance
	if err := json.Unmarshal([]byte(text), &instance); err != nil || instance.ID == "" || instance.ShootName == "" {
		return environment.Instance{}, failure.New(failure.Permanent, "the runtime's client data does not describe an instance: another client ordered the runtime")
	}

	return instance, nil
}

// withoutUnknown sends an order with the client data. If the Provisioner does not understand the order, withoutUnknown sends it
// again without the data. If that succeeds, it records in c.noClientData that the Provisioner does not support client data.
func (c *Client) withoutUnknown(clientData *string, send func(clientData *string) (Operation, error)) (Operation, error) {
	ordered, err := send(clientData)
	if clientData == nil || !errors.Is(err, ErrNotUnderstood) {
		return ordered, err
	}

	if ordered, err = send(nil); err == nil {
		c.noClientData.Store(true)
	}

	return ordered, err
}
