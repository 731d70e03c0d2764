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
	// DefaultNamespace is where the agent stands when its order does not say.
	DefaultNamespace = "kyma-system"
)

// Token lets an agent connect once.
type Token = director.Token

// Tokens makes tokens, each good for one connection within an hour or so. Its errors are of package failure.
type Tokens interface {
	OneTimeToken(ctx context.Context, tenant, runtimeID string) (Token, error)
}

// Place is where an agent stands.
type Place struct {
	ShootName, Namespace string
}

// Agent is what a cluster holds of its agent.
type Agent struct {
	// ConfiguredBy is the operation that wrote its configuration; empty when there is none, or another hand's.
	ConfiguredBy string
	// Replaces is the id of the connection that the configuration does away with; empty when there was none.
	Replaces string
	// Version of the configuration that was read; empty when there is none.
	Version string
	// Connection is how it is connected; nil when it has not begun to connect.
	Connection *Connection
}

// Configuration is what an agent has to know.
type Configuration struct {
	Token

	RuntimeID, Tenant string
	// WrittenBy is the operation that writes it, and Replaces the id of the connection that it does away with.
	WrittenBy, Replaces string
	// Over is the version of the configuration that it is written over, empty for none. Over any other it is refused.
	Over string
}

// Clusters is where agents stand. Its errors are of package failure; those of a cluster's own API server have failure.ComponentRuntime.
type Clusters interface {
	// Agent reads what there is. A cluster without any is no error.
	Agent(ctx context.Context, at Place) (Agent, error)
	// ConfigureAgent writes the configuration, and makes its namespace if that is missing.
	ConfigureAgent(ctx context.Context, at Place, configuration Configuration) error
	// RemoveConnection removes the connection of this id, upon which the agent connects anew. Another one stays.
	RemoveConnection(ctx context.Context, at Place, id string) error
}

// Options are what the stages need.
type Options struct {
	Clusters Clusters
	// Tokens is nil where the Provisioner works without Director.
	Tokens Tokens
	// ConfigurationTimeout bounds how long cluster and Director may refuse the configuration, ConnectionTimeout how long the agent may
	// take to connect.
	ConfigurationTimeout time.Duration
	ConnectionTimeout    time.Duration
	// Connected are stages that follow when the agent is connected.
	Connected []process.Stage[operation.Data]
	// Limit bounds a whole reconnection.
	Limit time.Duration
}

// Stages are those that connect the agent of a runtime that was ordered with one. Without Director there are none, and a runtime that
// was ordered before there was one is left alone.
func Stages(options Options) []process.Stage[operation.Data] {
	if options.Tokens == nil {
		return nil
	}

	return options.stages(func(op operation.Operation) bool { return op.Data.Registered })
}

// Reconnect has the agent of a runtime connect anew.
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

// PlaceOf finds the agent of a runtime by its order, if it was ordered with one.
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

// place finds the agent of the operation's runtime.
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
	return failure.New(failure.Conflict, "the runtime %s has no runtime agent: it was ordered without the component %s", runtimeID, Component).
		WithReason(failure.ReasonConflict, failure.ComponentProvisioner)
}

// ErrOff says that no agent can connect.
func ErrOff() error {
	return failure.New(failure.Permanent, "runtime agents connect by way of Director, and this Provisioner works without it: "+
		"its operators turn it on with APP_DIRECTOR_ENABLED").WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
}
