package provisionerclient

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/environment"
)

// UpgradeRuntime orders a change of the runtime from the cluster configuration of the given instance to the configuration of the
// changed one. Like UpgradeShoot, it can be repeated: for the same IdempotencyKey, our Provisioner returns the same operation.
func (c *Client) UpgradeRuntime(ctx context.Context, caller Caller, instance, changed environment.Instance) (Operation, error) {
	upgrade := newUpgrade(instance.Request.Cluster, changed.Request.Cluster)

	return c.withoutUnknown(c.clientData(changed), func(clientData *string) (Operation, error) {
		upgrade.ClientData = clientData

		return c.UpgradeShoot(ctx, caller, instance.RuntimeID, upgrade)
	})
}

// UpgradeOf returns the input that UpgradeRuntime sends, without the client data. Its JSON form has the Provisioner's field
// names.
func UpgradeOf(instance, changed environment.Instance) any {
	return newUpgrade(instance.Request.Cluster, changed.Request.Cluster)
}

// newUpgrade converts the target cluster to the Provisioner's input. The input has all fields that can change,
// even if their values equal the current ones: an earlier upgrade may have failed halfway. Only an unchanged
// Kubernetes version is omitted, because Gardener may have upgraded the Shoot in the meantime.
func newUpgrade(current, target environment.Cluster) *wire.UpgradeShootInput {
	config := &wire.GardenerUpgradeInput{
		AutoScalerMin:  &target.AutoScalerMin,
		AutoScalerMax:  &target.AutoScalerMax,
		MaxSurge:       &target.MaxSurge,
		MaxUnavailable: &target.MaxUnavailable,
		MachineType:    unlessZero(target.MachineType),
		Purpose:        unlessZero(target.Purpose),
		OidcConfig:     oidcInput(target.OIDC),
	}

	if target.VolumeType != "" {
		config.DiskType, config.VolumeSizeGB = &target.VolumeType, &target.VolumeSizeGB
	}

	if target.KubernetesVersion != current.KubernetesVersion {
		config.KubernetesVersion = &target.KubernetesVersion
	}

	return &wire.UpgradeShootInput{GardenerConfig: config, Administrators: target.Administrators}
}
