package runtimeorder

import (
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/provisionerclient/wire"
)

// Upgrade returns what makes a runtime the target. All that may change is named, whether it differs or not: a change before may have
// failed halfway. Only the version of Kubernetes is left out where it stays, since Gardener may have raised it by itself.
func Upgrade(current, target environment.Cluster) *wire.UpgradeShootInput {
	config := &wire.GardenerUpgradeInput{
		AutoScalerMin:  &target.AutoScalerMin,
		AutoScalerMax:  &target.AutoScalerMax,
		MaxSurge:       &target.MaxSurge,
		MaxUnavailable: &target.MaxUnavailable,
		MachineType:    unlessEmpty(target.MachineType),
		Purpose:        unlessEmpty(target.Purpose),
		OidcConfig:     OIDC(target.OIDC),
	}

	if target.VolumeType != "" {
		config.DiskType, config.VolumeSizeGB = &target.VolumeType, &target.VolumeSizeGB
	}

	if target.KubernetesVersion != current.KubernetesVersion {
		config.KubernetesVersion = &target.KubernetesVersion
	}

	return &wire.UpgradeShootInput{GardenerConfig: config, Administrators: target.Administrators}
}

// unlessEmpty leaves a field out that has no value.
func unlessEmpty(text string) *string {
	if text == "" {
		return nil
	}

	return &text
}
