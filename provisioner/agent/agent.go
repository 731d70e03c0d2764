package agent

import (
	"context"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/director"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

const (
	// Component is the agent's name in the component list of a Kyma order. A runtime without this component has no agent.
	Component = "compass-runtime-agent"
	// DefaultNamespace is the agent's namespace if the order does not set one.
	DefaultNamespace = "kyma-system"
)

// Token is a one-time token that an agent exchanges at the Connector for its client certificate. Do not log its fields.
type Token = director.Token

// Tokens issues one-time tokens for agents. A token expires about an hour after it is issued.
type Tokens interface {
	OneTimeToken(ctx context.Context, tenant, runtimeID string) (Token, error)
}

// Place identifies an agent by the Shoot of its cluster and by its namespace in the cluster. Statuses uses it as a cache key, so
// it must stay comparable.
type Place struct {
	ShootName, Namespace string
}

// Agent is the state of an agent, read from the objects in its cluster. The zero value describes a cluster without an agent.
type Agent struct {
	// ConfiguredBy is the ID of the operation that wrote the Secret. It is empty if there is no Secret, or if somebody created
	// it manually.
	ConfiguredBy string
	// Replaces is the ID of the connection that existed when the Secret was written, or empty.
	Replaces string
	// Version is the resource version of the Secret. It is empty if there is no Secret.
	Version string
	// Connection is nil until the agent has created its first CompassConnection, and while that object is being deleted.
	Connection *Connection
}

// Configuration is the content of an agent's Secret.
type Configuration struct {
	Token

	RuntimeID, Tenant string
	// WrittenBy is the ID of the operation that writes the Secret. Replaces is the ID of the connection that the agent must
	// replace.
	WrittenBy, Replaces string
	// Over is the resource version of the Secret that the writer has read, or empty if no Secret existed. The write fails if
	// another replica has changed or created the Secret since that read.
	Over string
}

// Clusters reads and configures the agents in their clusters. Errors from a cluster's API server have the component
// failure.ComponentRuntime; Statuses relies on this.
type Clusters interface {
	// Agent reads the state of the agent. It returns the zero Agent for a cluster without an agent.
	Agent(ctx context.Context, at Place) (Agent, error)
	// ConfigureAgent writes the configuration. It creates the namespace if it is missing.
	ConfigureAgent(ctx context.Context, at Place, configuration Configuration) error
	// RemoveConnection removes the connection with the given ID, so that the agent connects again. It does not remove a
	// connection with another ID.
	RemoveConnection(ctx context.Context, at Place, id string) error
}

// Options configure the stages that connect an agent.
type Options struct {
	Clusters Clusters
	// Tokens is nil if Director is disabled. Stages then returns nil, and reconnections fail with ErrOff.
	Tokens Tokens
	// ConfigurationTimeout is the retry window of the step that writes the configuration. ConnectionTimeout limits the wait for the
	// connection, including the attempts with further tokens.
	ConfigurationTimeout time.Duration
	ConnectionTimeout    time.Duration
	// Connected lists the stages that run after the agent has connected.
	Connected []process.Stage[operation.Data]
	// Limit is the time limit of a whole reconnection. Provisioning operations have their own limit.
	Limit time.Duration
}

// Stages returns the stages that connect the agent during provisioning, or nil if Director is disabled. The stages skip runtimes
// that were ordered while Director was disabled: Director has no entry for them and would not issue a token.
func Stages(options Options) []process.Stage[operation.Data] {
	if options.Tokens == nil {
		return nil
	}

	return options.stages(operation.Registered())
}

// Reconnect returns the process for reconnectRuntimeAgent operations. The process exists even if Director is disabled: operations
// that were accepted earlier then fail with a clear message.
func Reconnect(options Options) process.Process[operation.Data] {
	return process.Process[operation.Data]{
		Kind: operation.KindReconnectRuntime, Limit: options.Limit,
		Stages: options.stages(process.Condition[operation.Data]{}),
	}
}

// stages returns the stage that configures the agent, the stage that waits for the connection, and the stages in o.Connected. The
// first two stages run only if the given condition holds. If an operation failed while waiting for the connection, an operator's
// retry starts again with the configuration, because the agent has used up its token.
func (o Options) stages(when process.Condition[operation.Data]) []process.Stage[operation.Data] {
	const connecting = "ConnectRuntimeAgent"

	only := func(step process.Step[operation.Data], notes process.Notes) []process.Task[operation.Data] {
		return []process.Task[operation.Data]{{Step: step, When: when, Notes: notes}}
	}

	within := func(window time.Duration) process.RetryPolicy {
		retry := process.DefaultRetry()
		retry.Window = window

		return retry
	}

	return append([]process.Stage[operation.Data]{
		{Name: connecting, Retry: within(o.ConfigurationTimeout), Steps: only(connect{o}, process.Notes{
			Does:    "Gives the runtime agent a new token, and removes its present connection.",
			System:  "Director, Gardener, runtime",
			Creates: "the Secret with the configuration of the agent in the runtime",
		})},
		{
			Name: "WaitForAgentToConnect", Retry: within(o.ConnectionTimeout), RetryFrom: connecting,
			Steps: only(await{o}, process.Notes{
				Does:   "Waits until the runtime agent has connected, and gives it a new token if it cannot connect.",
				System: "Director, Gardener, runtime",
			}),
		},
	}, o.Connected...)
}

// PlaceOf returns the place of the runtime's agent. It returns false if the order does not contain Component.
func PlaceOf(shootName string, order spec.Runtime) (Place, bool) {
	if order.KymaConfig == nil {
		return Place{}, false
	}

	components := order.KymaConfig.Components

	found := slices.IndexFunc(components, func(each *spec.Component) bool {
		return each != nil && each.Component == Component
	})
	if found < 0 {
		return Place{}, false
	}

	place := Place{ShootName: shootName, Namespace: components[found].Namespace}
	if place.Namespace == "" {
		place.Namespace = DefaultNamespace
	}

	return place, true
}

// place returns the Place of the agent in the operation's runtime. It returns ErrNone if the order has no agent.
func place(op operation.Operation) (Place, error) {
	order, err := op.Data.Order()
	if err != nil {
		return Place{}, err
	}

	at, found := PlaceOf(op.Data.Runtime.ShootName, order)
	if !found {
		return Place{}, ErrNone(op.Data.Runtime.ID)
	}

	return at, nil
}

// ErrNone returns a failure.Conflict error for a runtime whose order contains no agent.
func ErrNone(runtimeID string) error {
	return failure.New(failure.Conflict, "the runtime %s has no runtime agent: its order lacks the component %s", runtimeID, Component).
		WithReason(failure.ReasonConflict, failure.ComponentProvisioner)
}

// ErrOff returns a failure.Permanent error for an agent that cannot connect because Director is disabled. Only Director issues
// tokens.
func ErrOff() error {
	return failure.New(failure.Permanent, "runtime agents connect through Director, and this Provisioner runs without Director: "+
		"operators can enable it with APP_DIRECTOR_ENABLED").WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
}
