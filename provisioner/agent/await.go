package agent

import (
	"context"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

const (
	// firstPoll and lastPoll are the bounds of the polling interval, which is an eighth of the elapsed time. The interval grows
	// because each poll requests a kubeconfig from Gardener.
	firstPoll, lastPoll = 2 * time.Second, 20 * time.Second
	// absentPoll is the minimum polling interval before the agent starts. The cluster first has to pull the agent's image.
	absentPoll = 5 * time.Second
	// newTokenPoll is the polling interval after a new token is issued. With a shorter interval, the next poll could still see
	// the failure of the old token, and Run would replace the new token before the agent has tried it.
	newTokenPoll = 2 * time.Minute
)

// await waits until the agent has connected and tried to synchronize with Director.
type await struct{ Options }

// Name implements process.Step.
func (await) Name() string { return "Wait_For_Agent_To_Connect" }

// Run implements process.Step. An agent that fails to connect has used up its token and does not try again, so Run issues a new
// token. It does so until ConnectionTimeout has passed.
func (s await) Run(ctx context.Context, op operation.Operation, log logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	at, err := place(op)
	if err != nil {
		return op, 0, err
	}

	found, err := s.Clusters.Agent(ctx, at)
	if err != nil {
		return op, 0, err
	}

	interval := min(max(op.Elapsed()/8, firstPoll), lastPoll)
	connection := found.Connection

	switch {
	case connection == nil || connection.State == "":
		return process.Await(op, "the runtime agent has not started to connect", max(interval, absentPoll), s.ConnectionTimeout)
	case connection.settled():
		log.WithField("state", connection.State).Info("runtime agent connected")

		return op, 0, nil
	case connection.broken() && op.Elapsed() < s.ConnectionTimeout:
		if s.Tokens == nil {
			return op, 0, ErrOff()
		}

		if err := s.configure(ctx, op, at, found); err != nil {
			return op, 0, err
		}

		return process.Await(op, connection.why()+"; it has received a new token", newTokenPoll, s.ConnectionTimeout)
	}

	return process.Await(op, connection.why(), interval, s.ConnectionTimeout)
}

// why explains to users why the connection is not settled yet. The text includes the problems that the agent reports.
func (c Connection) why() string {
	text := "the runtime agent is " + c.State + " and has not synchronized yet"
	if c.broken() {
		text = "the runtime agent could not connect (" + c.State + ")"
	}

	if problems := strings.Join(c.Problems, "; "); problems != "" {
		text += ": " + problems
	}

	return text
}
