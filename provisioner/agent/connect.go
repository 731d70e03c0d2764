package agent

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// connect writes a configuration with a new token and removes the current connection, which makes the agent connect again.
type connect struct{ Options }

// Name implements process.Step.
func (connect) Name() string { return "Connect_Runtime_Agent" }

// Run implements process.Step. In the Secret it records the ID of the operation and the ID of the connection to replace. When the
// step runs again after a crash, it therefore recognizes its own Secret and does not request a second token. If the agent has
// already connected with the first token, the step leaves that connection in place.
func (s connect) Run(ctx context.Context, op operation.Operation, log logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	if s.Tokens == nil {
		return op, 0, ErrOff()
	}

	at, err := place(op)
	if err != nil {
		return op, 0, err
	}

	found, err := s.Clusters.Agent(ctx, at)
	if err != nil {
		return op, 0, err
	}

	present := ""
	if found.Connection != nil {
		present = found.Connection.ID
	}

	// After a crash, the Secret of this operation may already exist. In that case, found.Replaces is the connection that the
	// first attempt wanted to replace.
	if found.ConfiguredBy != op.ID {
		found.Replaces = present

		if err := s.configure(ctx, op, at, found); err != nil {
			return op, 0, err
		}
	}

	if present != "" && present == found.Replaces {
		if err := s.Clusters.RemoveConnection(ctx, at, present); err != nil {
			return op, 0, err
		}
	}

	op.Data.Registered = true // Director issues tokens only to registered runtimes.

	log.WithField("shoot", at.ShootName).Info("runtime agent configured")

	return op, 0, nil
}

// configure writes a new token to the agent's Secret. The order of the calls matters: the caller reads the Secret, Save confirms
// the lease, and the write fails if the Secret was changed or created since then. A replica that was paused and lost its lease
// therefore cannot overwrite the change of its successor.
func (o Options) configure(ctx context.Context, op operation.Operation, at Place, over Agent) error {
	runtime := op.Data.Runtime

	token, err := o.Tokens.OneTimeToken(ctx, runtime.Account(), runtime.ID)
	if err != nil {
		return err
	}

	if err := op.Save(ctx); err != nil {
		return failure.Wrap(failure.Transient, err, "storing the operation before configuring the runtime agent failed")
	}

	return o.Clusters.ConfigureAgent(ctx, at, Configuration{
		Token: token, RuntimeID: runtime.ID, Tenant: runtime.Account(), WrittenBy: op.ID, Replaces: over.Replaces, Over: over.Version,
	})
}
