package provisionerclient

import (
	"context"
	"fmt"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// UpgradeKyma orders the installation of exactly the components and values in the changed instance. Like UpgradeShoot, it can be
// repeated with the same IdempotencyKey, but the key must differ from the keys of other orders.
func (c *Client) UpgradeKyma(ctx context.Context, caller Caller, changed environment.Instance) (Operation, error) {
	input := kymaInput(changed.Request.Cluster.Kyma)
	if input == nil {
		return Operation{}, failure.New(failure.Internal, "the changed instance %s has no Kyma to install", changed.ID)
	}

	strategy := wire.ConflictStrategyReplace
	input.ConflictStrategy = &strategy

	for _, component := range input.Components {
		component.ConflictStrategy = &strategy
	}

	return c.withoutUnknown(c.clientData(changed), func(clientData *string) (Operation, error) {
		call := c.call("change Kyma", caller)

		answer, err := wire.UpgradeRuntime(ctx, call, changed.RuntimeID, &wire.UpgradeRuntimeInput{KymaConfig: input, ClientData: clientData})
		if err != nil {
			return Operation{}, fmt.Errorf("changing the Kyma installation of runtime %s: %w", changed.RuntimeID, err)
		}

		return call.started(answer.Result)
	})
}

// kymaInput converts a Kyma installation to the Provisioner's input. It returns nil if there is no installation.
func kymaInput(kyma *environment.Kyma) *wire.KymaConfigInput {
	if kyma == nil || kyma.Installation == nil {
		return nil
	}

	input := &wire.KymaConfigInput{
		Version: kyma.Installation.Version, Profile: unlessZero(wire.KymaProfile(kyma.Installation.Profile)),
		Configuration: entriesInput(kyma.Installation.Configuration),
	}

	for _, component := range kyma.Installation.Components {
		input.Components = append(input.Components, &wire.ComponentConfigurationInput{
			Component: component.Name, Namespace: component.Namespace, SourceURL: unlessZero(component.SourceURL),
			Configuration: entriesInput(component.Configuration),
		})
	}

	return input
}

func entriesInput(entries []environment.KymaEntry) []*wire.ConfigEntryInput {
	inputs := make([]*wire.ConfigEntryInput, 0, len(entries))
	for _, entry := range entries {
		inputs = append(inputs, &wire.ConfigEntryInput{Key: entry.Key, Value: entry.Value.Reveal(), Secret: unlessZero(entry.Secret)})
	}

	return inputs
}
