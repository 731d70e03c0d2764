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
	// An agent that connects is looked at after this long at first, and after an eighth of what it has taken later on: each look
	// costs a kubeconfig.
	firstLook, lastLook = 2 * time.Second, 20 * time.Second
	// absentLook is for an agent that has not begun: its image has to be fetched first.
	absentLook = 5 * time.Second
	// newToken is how long an agent that could not connect has to do it with another token.
	newToken = 2 * time.Minute
)

// await waits until the agent is connected.
type await struct{ Options }

// Name implements process.Step.
func (await) Name() string { return "Wait_For_Agent_To_Connect" }

// Run implements process.Step. An agent that failed to connect has spent its token, so it gets another.
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

	look := min(max(op.Elapsed()/8, firstLook), lastLook)
	connection := found.Connection

	switch {
	case connection == nil || connection.State == "":
		return process.Await(op, "the runtime agent has not begun to connect", max(look, absentLook), s.ConnectionTimeout)
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

		return process.Await(op, connection.why()+"; it has got another token", newToken, s.ConnectionTimeout)
	}

	return process.Await(op, connection.why(), look, s.ConnectionTimeout)
}

// why tells people how it is with a connection that is not settled.
func (c Connection) why() string {
	told := "the runtime agent is " + c.State + " and has not synchronized yet"
	if c.broken() {
		told = "the runtime agent could not connect (" + c.State + ")"
	}

	if problems := strings.Join(c.Problems, "; "); problems != "" {
		told += ": " + problems
	}

	return told
}
