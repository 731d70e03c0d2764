package provisionerclient

import (
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
)

// clientData returns the instance in the form that the Provisioner stores with its runtime, so that the broker can restore a lost
// row of the instance; see ParseClientData. It omits the context of the request, because platforms may put credentials there. It
// returns nil if the instance is too large, or if the Provisioner does not support client data.
func (c *Client) clientData(instance environment.Instance) *string {
	if c.noClientData.Load() {
		return nil
	}

	instance.Request.Context = nil

	encoded, err := json.Marshal(instance)
	if err != nil || utf8.RuneCount(encoded) > bounds.ClientData {
		return nil // the order is more important than the client data
	}

	return new(string(encoded))
}

// ParseClientData returns the instance in the client data of a runtime. The instance has no context and, if the runtime has not
// changed since its order, no RuntimeID. If there is no data, the error is of kind failure.NotFound.
func ParseClientData(text string) (environment.Instance, error) {
	if text == "" {
		return environment.Instance{}, failure.New(failure.NotFound,
			"the runtime has no data of its instance: an earlier release or another client has ordered it")
	}

	var instance environment.Instance
	if err := json.Unmarshal([]byte(text), &instance); err != nil || instance.ID == "" || instance.ShootName == "" {
		return environment.Instance{}, failure.New(failure.Permanent, "the data of the runtime does not describe an instance: another client has ordered it")
	}

	return instance, nil
}

// withoutUnknown sends an order with the client data. If the Provisioner does not understand the order, it sends the order again
// without the data. If that succeeds, it remembers that the Provisioner does not support client data.
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
