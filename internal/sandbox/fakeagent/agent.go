package fakeagent

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// Connector is whom the agent speaks with. Its errors are what the agent tells.
type Connector interface {
	// Connect spends a token.
	Connect(ctx context.Context, url, token string) error
	// Synchronize is what a connected agent does from time to time.
	Synchronize(ctx context.Context) error
}

// Options say in which cluster an agent works and whom it speaks with.
type Options struct {
	Cluster   dynamic.Interface
	Connector Connector
	// Every is how often the agent looks.
	Every time.Duration
	Log   logrus.FieldLogger
}

// Agent works while Run runs.
type Agent struct {
	Options

	// spent is the token that it connected with last, and refused the one that it could not connect with.
	spent, refused string
}

// New returns an agent that does nothing before Run.
func New(options Options) *Agent { return &Agent{Options: options} }

// Run works until the context ends, which is no error.
func (a *Agent) Run(ctx context.Context) error {
	ticker := time.NewTicker(a.Every)
	defer ticker.Stop()

	for {
		if err := a.look(ctx); err != nil && ctx.Err() == nil {
			a.Log.WithError(err).Debug("the simulated agent looks again")
		}

		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// look does what is to be done now. It reads the connection before the token: whoever wants another connection writes a token and then
// removes the connection, so the other way round a spent token could be taken for the one to connect anew with.
func (a *Agent) look(ctx context.Context) error {
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
		return a.tell(ctx, connection, synchronization(a.Connector.Synchronize(ctx)))
	}
}

// connect spends the token of the configuration, unless it has. A connection that could not be told is told now.
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

			return a.tell(ctx, connection, connecting(problem))
		}

		a.spent = found.token
	}

	if !kept {
		if err := a.keepCredentials(ctx, found); err != nil {
			return err
		}
	}

	return a.tell(ctx, connection, connecting(nil))
}
