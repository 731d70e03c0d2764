package fakeagent

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

// Connector simulates the Connector service. The agent reports the errors of these calls in the CompassConnection.
type Connector interface {
	// Connect exchanges a one-time token at the URL of the service. The agent never repeats a successful exchange. It repeats a
	// failed one only after the CompassConnection has been deleted or another agent has been started.
	Connect(ctx context.Context, url, token string) error
	// Synchronize calls Director on behalf of a connected agent. The agent repeats the call until it succeeds.
	Synchronize(ctx context.Context) error
}

// Options configures an agent.
type Options struct {
	Cluster   dynamic.Interface
	Connector Connector
	// Every is the interval between checks of the cluster. It must be positive.
	Every time.Duration
	Log   logrus.FieldLogger
}

// Agent simulates one runtime agent while Run runs. It must be used by one goroutine at a time. Run only one agent per cluster:
// several agents would compete for the token, which can be exchanged only once.
type Agent struct {
	Options

	// spent is the last exchanged token, and refused is the last rejected token. Both are empty after a restart. The agent then
	// detects a spent token by the credentials in the cluster.
	spent, refused string
}

// New returns an agent. The agent does nothing until Run is called.
func New(options Options) *Agent { return &Agent{Options: options} }

// Run checks the cluster periodically until the context ends, which is not an error. A failed check is logged; the next check
// follows after the interval.
func (a *Agent) Run(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := a.check(ctx); err != nil && ctx.Err() == nil {
			a.Log.WithError(err).Debug("the simulated agent failed to check its cluster; trying again")
		}
	}, a.Every)

	return nil
}

// check connects or synchronizes, depending on the state of the connection. It must read the connection before the token. A
// client that requests a new connection writes a new token first and then deletes the connection. An agent that read the token
// first could therefore read the spent token, find no connection, and exchange the spent token again.
func (a *Agent) check(ctx context.Context) error {
	connection, err := a.connection(ctx)
	if err != nil {
		return err
	}

	switch stateOf(connection) {
	case synchronized:
		return nil
	case "", connectionFailed:
		return a.connect(ctx, connection)
	default:
		return a.report(ctx, connection, synchronization(a.Connector.Synchronize(ctx)))
	}
}

// connect exchanges the token in the configuration and reports the result. A token can be exchanged only once, so connect stores
// the credentials before the report: if the agent dies in between, the next agent finds the credentials and repeats only the
// report.
func (a *Agent) connect(ctx context.Context, connection *unstructured.Unstructured) error {
	found, err := a.configuration(ctx)
	if err != nil || found.token == "" || connection != nil && found.token == a.refused {
		return err
	}

	stored, err := a.credentialsFor(ctx, found)
	if err != nil {
		return err
	}

	if !stored && found.token != a.spent {
		if problem := a.Connector.Connect(ctx, found.url, found.token); problem != nil {
			a.refused = found.token

			return a.report(ctx, connection, connecting(problem))
		}

		a.spent = found.token
	}

	if !stored {
		if err := a.keepCredentials(ctx, found); err != nil {
			return err
		}
	}

	return a.report(ctx, connection, connecting(nil))
}
