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
	// The state of an agent is read after this time first, later after an eighth of the time that has passed: each read costs a
	// kubeconfig.
	firstLook, lastLook = 2 * time.Second, 20 * time.Second
	// absentLook is the interval before the agent has started: its image must be pulled first.
	absentLook = 5 * time.Second
	// newToken is the time that an agent gets to connect with a second token.
	newToken = 2 * time.Minute
)

// await waits until the agent is connected.
type await struct{ Options }

// Name implements process.Step.
func (await) Name() string { return "Wait_For_Agent_To_Connect" }

// Run implements process.Step. An agent that failed to connect has used its token, so it gets another.
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
		return process.Await(op, "the runtime agent has not started to connect", max(look, absentLook), s.ConnectionTimeout)
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

// why describes a connection that is not settled yet.
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
