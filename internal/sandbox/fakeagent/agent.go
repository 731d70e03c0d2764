package fakeagent

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

// Connector simulates the Connector service for an agent. The agent reports its errors in the CompassConnection.
type Connector interface {
	// Connect exchanges a one-time token of the service at the URL. The agent never exchanges a token again after success, nor
	// after an error while its connection exists.
	Connect(ctx context.Context, url, token string) error
	// Synchronize is the periodic call of a connected agent.
	Synchronize(ctx context.Context) error
}

// Options configure an agent.
type Options struct {
	Cluster   dynamic.Interface
	Connector Connector
	// Every is the interval in which the agent checks its cluster. It must be positive.
	Every time.Duration
	Log   logrus.FieldLogger
}

// Agent is an agent that works while Run runs. It is used by one goroutine. Several agents in one cluster would compete for the
// token, of which only one exchange succeeds.
type Agent struct {
	Options

	// spent is the last exchanged token, refused the last rejected one. A restarted agent has neither: it recognizes an exchanged
	// token by the credentials in the cluster.
	spent, refused string
}

// New returns an agent. It does nothing before Run.
func New(options Options) *Agent { return &Agent{Options: options} }

// Run checks the cluster periodically until the context ends, which is not an error. A failed check is logged and repeated after
// the interval.
func (a *Agent) Run(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := a.check(ctx); err != nil && ctx.Err() == nil {
			a.Log.WithError(err).Debug("the simulated agent tries again")
		}
	}, a.Every)

	return nil
}

// check connects or synchronizes, depending on the state of the connection. It reads the connection before the token: a new
// connection is requested by writing a token and then removing the connection, so the reverse order could read a spent token.
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

// connect exchanges the token of the configuration and reports the connection. The order protects the token, which can be
// exchanged once: the credentials are stored before the report, so that an agent that dies in between finds them and only repeats
// the report.
func (a *Agent) connect(ctx context.Context, connection *unstructured.Unstructured) error {
	found, err := a.configuration(ctx)
	if err != nil || found.token == "" || connection != nil && found.token == a.refused {
		return err
	}

	kept, err := a.credentialsFor(ctx, found)
	if err != nil {
		return err
	}

	if !kept && found.token != a.spent {
		if problem := a.Connector.Connect(ctx, found.url, found.token); problem != nil {
			a.refused = found.token

			return a.report(ctx, connection, connecting(problem))
		}

		a.spent = found.token
	}

	if !kept {
		if err := a.keepCredentials(ctx, found); err != nil {
			return err
		}
	}

	return a.report(ctx, connection, connecting(nil))
}
