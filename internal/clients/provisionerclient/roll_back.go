package provisionerclient

import (
	"context"
	"errors"
	"fmt"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// RollBackKyma orders the reinstallation of the Kyma version and configuration that the last upgrade of the runtime replaced.
// changed is the instance after the rollback. Like UpgradeKyma, it can be repeated with the same IdempotencyKey. The Kyma
// Provisioner rejects the order without any effect.
func (c *Client) RollBackKyma(ctx context.Context, caller Caller, changed environment.Instance) (Operation, error) {
	call := c.call("roll back Kyma", caller)

	answer, err := wire.RollBackKyma(ctx, call, changed.RuntimeID, c.clientData(changed))

	switch {
	case errors.Is(err, ErrNotUnderstood):
		return Operation{}, failure.Wrap(failure.Permanent, err, "the Provisioner cannot roll back Kyma, because it is a Kyma Provisioner. Nothing was changed").
			WithReason(failure.Of(err).Reason, failure.ComponentProvisioner)
	case err != nil:
		return Operation{}, fmt.Errorf("rolling back Kyma of runtime %s: %w", changed.RuntimeID, err)
	case answer.Result == nil:
		return Operation{}, call.missing("the runtime")
	}

	return call.started(answer.Result.LastOperationStatus)
}
