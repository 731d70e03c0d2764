package agent

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

// Connection is the state of a connection, as the agent reports it.
type Connection struct {
	// ID changes each time the agent connects again.
	ID    string
	State string
	// Problems are error messages of the agent.
	Problems []string
}

// settled reports whether the agent is connected and has reached Director since. Failed synchronizations do not end the connection: the
// agent retries them.
func (c Connection) settled() bool {
	return c.State == Synchronized || c.State == SynchronizationFailed || c.State == MetadataUpdateFailed
}

// broken reports whether the agent has failed to connect and does not retry.
func (c Connection) broken() bool {
	return c.State == ConnectionFailed || c.State == ConnectionMaintenanceFailed
}

// State is a state of the connection of an agent, as the API names it.
type State string

// The states of connections.
const (
	StatusPending      State = "Pending"
	StatusConnected    State = "Connected"
	StatusDisconnected State = "Disconnected"
)

// Status is the connection of the agent of a runtime, with its problems.
type Status struct {
	State    State
	Problems []string
}

// status returns the status of the connection; that of a missing connection is pending.
func (c *Connection) status() Status {
	if c == nil || c.State == "" {
		return Status{State: StatusPending}
	}

	switch c.State {
	case Connected, Synchronized, SynchronizationFailed, ResourceApplicationFailed, MetadataUpdateFailed:
		return Status{State: StatusConnected, Problems: c.Problems}
	case ConnectionFailed, ConnectionMaintenanceFailed:
		return Status{State: StatusDisconnected, Problems: c.Problems}
	}

	return pending(append([]string{"the runtime agent is in an unknown state: " + c.State}, c.Problems...)...)
}

func pending(problems ...string) Status { return Status{State: StatusPending, Problems: problems} }
