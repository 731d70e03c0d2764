package agent

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// connect configures the agent with a new token for each operation.
type connect struct{ Options }

// Name implements process.Step.
func (connect) Name() string { return "Connect_Runtime_Agent" }

// Run implements process.Step. The configuration names the operation that wrote it and the connection that it replaces: if the step runs
// again, it neither uses another token nor removes the connection that was made with the first one.
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

	op.Data.Registered = true // Director issues tokens for registered runtimes only

	log.WithField("shoot", at.ShootName).Info("runtime agent configured")

	return op, 0, nil
}

// configure gives the agent a new token. The configuration is read before the lease is confirmed and written only if it is unchanged
// since: a frozen replica overwrites nothing newer.
func (o Options) configure(ctx context.Context, op operation.Operation, at Place, over Agent) error {
	runtime := op.Data.Runtime

	token, err := o.Tokens.OneTimeToken(ctx, runtime.Tenant, runtime.ID)
	if err != nil {
		return err
	}

	if err := op.Save(ctx); err != nil {
		return failure.Wrap(failure.Transient, err, "the operation could not be stored before the runtime agent is configured")
	}

	return o.Clusters.ConfigureAgent(ctx, at, Configuration{
		Token: token, RuntimeID: runtime.ID, Tenant: runtime.Tenant, WrittenBy: op.ID, Replaces: over.Replaces, Over: over.Version,
	})
}
