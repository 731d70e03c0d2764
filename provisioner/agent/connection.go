package agent

// The values of status.connectionState in a CompassConnection, from the API package of the Compass runtime agent.
const (
	Connected                   = "Connected"
	ConnectionFailed            = "ConnectionFailed"
	ConnectionMaintenanceFailed = "ConnectionMaintenanceFailed"
	Synchronized                = "Synchronized"
	SynchronizationFailed       = "SynchronizationFailed"
	ResourceApplicationFailed   = "ResourceApplicationFailed"
	MetadataUpdateFailed        = "MetadataUpdateFailed"
)

// Connection is the state of a CompassConnection, as the agent reports it.
type Connection struct {
	// ID is the UID of the CompassConnection. Each new connection of an agent has a new ID.
	ID string
	// State is one of the constants above, a value that a newer agent introduced, or empty before the first report.
	State string
	// Problems contains the agent's error messages.
	Problems []string
}

// settled reports whether the agent has connected and tried to synchronize with Director at least once. The synchronization may
// have failed: the connection persists, and the agent synchronizes again later. In the state ResourceApplicationFailed, the
// connection is not settled.
func (c Connection) settled() bool {
	return c.State == Synchronized || c.State == SynchronizationFailed || c.State == MetadataUpdateFailed
}

// broken reports whether the agent has failed to connect. The agent does not try again by itself.
func (c Connection) broken() bool {
	return c.State == ConnectionFailed || c.State == ConnectionMaintenanceFailed
}

// State is the state of an agent's connection in the Provisioner's API.
type State string

// The connection states, as in the GraphQL enum RuntimeAgentConnectionStatus.
const (
	StatusPending      State = "Pending"
	StatusConnected    State = "Connected"
	StatusDisconnected State = "Disconnected"
)

// Status is the state of an agent's connection. Problems explain the state to users.
type Status struct {
	State    State
	Problems []string
}

// status converts the state of a CompassConnection to the API's states. A missing connection and an unknown state are both
// reported as pending.
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

// pending returns StatusPending. The problems explain why the agent's state is unknown. Callers pass none if no connection is
// expected.
func pending(problems ...string) Status { return Status{State: StatusPending, Problems: problems} }
