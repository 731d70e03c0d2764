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

// State is a state of the connection of an agent, as the API names it.
type State string

// The states of connections.
const (
	StatusPending      State = "Pending"
	StatusConnected    State = "Connected"
	StatusDisconnected State = "Disconnected"
)

// Status reports how the agent of a runtime is connected, and the problems that it has.
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
