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
	// Component is the name of the agent among the components of Kyma.
	Component = "compass-runtime-agent"
	// DefaultNamespace is the namespace of the agent if its order names none.
	DefaultNamespace = "kyma-system"
)

// Token lets an agent connect, once.
type Token = director.Token

// Tokens issues tokens, each for one connection within about an hour. Its errors are of package failure.
type Tokens interface {
	OneTimeToken(ctx context.Context, tenant, runtimeID string) (Token, error)
}

// Place locates an agent.
type Place struct {
	ShootName, Namespace string
}

// Agent is the state of an agent in its cluster.
type Agent struct {
	// ConfiguredBy is the operation that wrote the configuration; empty if there is none, or one made by hand.
	ConfiguredBy string
	// Replaces is the id of the connection that the configuration replaces; empty if there was none.
	Replaces string
	// Version is the resource version of the configuration; empty if there is none.
	Version string
	// Connection is the state of its connection; nil before the first one.
	Connection *Connection
}

// Configuration is the content of an agent's Secret.
type Configuration struct {
	Token

	RuntimeID, Tenant string
	// WrittenBy is the operation that writes it, Replaces the id of the connection that it replaces.
	WrittenBy, Replaces string
	// Over is the version that it replaces, empty for none. Writing over any other version fails.
	Over string
}

// Clusters reaches agents in their clusters. Its errors are of package failure; those of a cluster's API server have
// failure.ComponentRuntime.
type Clusters interface {
	// Agent reads the state of the agent. A cluster without agent is not an error.
	Agent(ctx context.Context, at Place) (Agent, error)
	// ConfigureAgent writes the configuration and creates the namespace if it is missing.
	ConfigureAgent(ctx context.Context, at Place, configuration Configuration) error
	// RemoveConnection removes the connection with this id, so that the agent connects again. A connection with another id stays.
	RemoveConnection(ctx context.Context, at Place, id string) error
}

// Options configure the stages.
type Options struct {
	Clusters Clusters
	// Tokens is nil if the Provisioner runs without Director.
	Tokens Tokens
	// ConfigurationTimeout bounds how long cluster and Director may refuse the configuration, ConnectionTimeout how long the agent may
	// take to connect.
	ConfigurationTimeout time.Duration
	ConnectionTimeout    time.Duration
	// Connected are the stages after the agent has connected.
	Connected []process.Stage[operation.Data]
	// Limit bounds a whole reconnection.
	Limit time.Duration
}

// Stages returns the stages that connect the agent of a runtime that was ordered with one; none without Director. Runtimes that were
// ordered while the Provisioner ran without Director are skipped.
func Stages(options Options) []process.Stage[operation.Data] {
	if options.Tokens == nil {
		return nil
	}

	return options.stages(func(op operation.Operation) bool { return op.Data.Registered })
}

// Reconnect returns the process that makes the agent of a runtime connect again.
func Reconnect(options Options) process.Process[operation.Data] {
	return process.Process[operation.Data]{Kind: operation.KindReconnectRuntime, Limit: options.Limit, Stages: options.stages(nil)}
}

func (o Options) stages(when func(operation.Operation) bool) []process.Stage[operation.Data] {
	const connecting = "ConnectRuntimeAgent"

	only := func(step process.Step[operation.Data]) []process.Task[operation.Data] {
		return []process.Task[operation.Data]{{Step: step, When: when}}
	}

	within := func(window time.Duration) process.RetryPolicy {
		retry := process.DefaultRetry()
		retry.Window = window

		return retry
	}

	return append([]process.Stage[operation.Data]{
		{Name: connecting, Retry: within(o.ConfigurationTimeout), Steps: only(connect{o})},
		{
			Name: "WaitForAgentToConnect", Retry: within(o.ConnectionTimeout), RetryFrom: connecting,
			Steps: only(await{o}),
		},
	}, o.Connected...)
}

// PlaceOf returns the place of the agent of a runtime, if its order includes one.
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

// place returns the place of the agent of the operation's runtime.
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

// ErrNone says that the runtime has no agent.
func ErrNone(runtimeID string) error {
	return failure.New(failure.Conflict, "the runtime %s has no runtime agent: its order lacks the component %s", runtimeID, Component).
		WithReason(failure.ReasonConflict, failure.ComponentProvisioner)
}

// ErrOff says that no agent can connect.
func ErrOff() error {
	return failure.New(failure.Permanent, "runtime agents connect through Director, and this Provisioner runs without it: "+
		"its operators enable it with APP_DIRECTOR_ENABLED").WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
}
