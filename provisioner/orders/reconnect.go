package orders

import (
	"context"

	"github.com/environment-broker/environment-broker/provisioner/agent"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
)

// ReconnectAgent accepts an operation that reconnects the runtime agent to Director, and returns the operation's ID. It rejects a
// hibernated runtime, a runtime without an agent and, if Director is disabled, every runtime.
func (s *Service) ReconnectAgent(ctx context.Context, caller Caller, runtimeID string) (string, error) {
	status, err := s.once(ctx, caller, requestFor(runtimeID, operation.KindReconnectRuntime), func() (operation.Status, error) {
		if s.Agents == nil {
			return operation.Status{}, agent.ErrOff()
		}

		runtime, err := s.owned(ctx, s.Runtimes.Reader(), caller.Tenant, runtimeID)
		if err != nil {
			return operation.Status{}, err
		}

		if err := s.awake(ctx, runtime); err != nil {
			return operation.Status{}, err
		}

		return s.change(ctx, caller, runtimeID, operation.KindReconnectRuntime, hasAgent)
	})

	return status.ID, err
}

// hasAgent rejects a runtime that was ordered without an agent.
func hasAgent(_ context.Context, _ storage.Tx, data *operation.Data) error {
	order, err := data.Order()
	if err != nil {
		return err
	}

	if _, found := agent.PlaceOf(data.Runtime.ShootName, order); !found {
		return agent.ErrNone(data.Runtime.ID)
	}

	return nil
}
