package agent

import (
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
)

// The states of a CompassConnection.
const (
	Connected                   = "Connected"
	ConnectionFailed            = "ConnectionFailed"
	ConnectionMaintenanceFailed = "ConnectionMaintenanceFailed"
	Synchronized                = "Synchronized"
	SynchronizationFailed       = "SynchronizationFailed"
	ResourceApplicationFailed   = "ResourceApplicationFailed"
	MetadataUpdateFailed        = "MetadataUpdateFailed"
)

// Connection is what an agent tells of its connection.
type Connection struct {
	// ID is another one each time that the agent connects anew.
	ID    string
	State string
	// Problems are what it says went wrong, in its words.
	Problems []string
}

// settled reports whether the agent is connected and has spoken with Director since. What it could not synchronize does not end
// the connection: it tries again by itself.
func (c Connection) settled() bool {
	return c.State == Synchronized || c.State == SynchronizationFailed || c.State == MetadataUpdateFailed
}

// broken reports whether there is no connection and the agent knows no way to one.
func (c Connection) broken() bool {
	return c.State == ConnectionFailed || c.State == ConnectionMaintenanceFailed
}

// status tells the connection in the words of the API.
func (c *Connection) status() *model.RuntimeConnectionStatus {
	if c == nil || c.State == "" {
		return told(model.RuntimeAgentConnectionStatusPending)
	}

	switch c.State {
	case Connected, Synchronized, SynchronizationFailed, ResourceApplicationFailed, MetadataUpdateFailed:
		return told(model.RuntimeAgentConnectionStatusConnected, c.Problems...)
	case ConnectionFailed, ConnectionMaintenanceFailed:
		return told(model.RuntimeAgentConnectionStatusDisconnected, c.Problems...)
	}

	return told(model.RuntimeAgentConnectionStatusPending, append([]string{"the runtime agent is in a state that is not known: " + c.State},
		c.Problems...)...)
}

func told(status model.RuntimeAgentConnectionStatus, problems ...string) *model.RuntimeConnectionStatus {
	answer := &model.RuntimeConnectionStatus{Status: status}
	for _, problem := range problems {
		answer.Errors = append(answer.Errors, &model.Error{Message: &problem})
	}

	return answer
}
