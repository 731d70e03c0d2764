package runtimes

import "github.com/environment-broker/environment-broker/provisioner/graph/model"

// clusterConfig tells what was asked for.
func clusterConfig(input *model.GardenerConfigInput) *model.GardenerConfig {
	if input == nil {
		return nil
	}

	return &model.GardenerConfig{
		Name:                                &input.Name,
		KubernetesVersion:                   &input.KubernetesVersion,
		TargetSecret:                        &input.TargetSecret,
		Provider:                            &input.Provider,
		Region:                              &input.Region,
		Seed:                                input.Seed,
		MachineType:                         &input.MachineType,
		MachineImage:                        input.MachineImage,
		MachineImageVersion:                 input.MachineImageVersion,
		DiskType:                            input.DiskType,
		VolumeSizeGB:                        input.VolumeSizeGB,
		WorkerCIDR:                          &input.WorkerCIDR,
		PodsCIDR:                            input.PodsCIDR,
		ServicesCIDR:                        input.ServicesCIDR,
		AutoScalerMin:                       &input.AutoScalerMin,
		AutoScalerMax:                       &input.AutoScalerMax,
		MaxSurge:                            &input.MaxSurge,
		MaxUnavailable:                      &input.MaxUnavailable,
		Purpose:                             input.Purpose,
		LicenceType:                         input.LicenceType,
		EnableKubernetesVersionAutoUpdate:   input.EnableKubernetesVersionAutoUpdate,
		EnableMachineImageVersionAutoUpdate: input.EnableMachineImageVersionAutoUpdate,
		ExposureClassName:                   input.ExposureClassName,
		ShootNetworkingFilterDisabled:       input.ShootNetworkingFilterDisabled,
		ControlPlaneFailureTolerance:        input.ControlPlaneFailureTolerance,
		EUAccess:                            input.EUAccess,
		ProviderSpecificConfig:              providerConfig(input.ProviderSpecificConfig),
	}
}

// providerConfig tells the provider's part of what was asked for.
func providerConfig(input *model.ProviderSpecificInput) model.ProviderSpecificConfig {
	switch {
	case input == nil:
		return nil
	case input.AWSConfig != nil:
		return awsConfig(input.AWSConfig)
	case input.AzureConfig != nil:
		return azureConfig(input.AzureConfig)
	case input.GCPConfig != nil:
		return &model.GCPProviderConfig{Zones: input.GCPConfig.Zones}
	default:
		return nil
	}
}

func awsConfig(input *model.AWSProviderConfigInput) *model.AWSProviderConfig {
	zones := make([]*model.AWSZone, 0, len(input.AWSZones))
	for _, zone := range input.AWSZones {
		zones = append(zones, &model.AWSZone{
			Name: &zone.Name, PublicCIDR: &zone.PublicCIDR, InternalCIDR: &zone.InternalCIDR, WorkerCIDR: &zone.WorkerCIDR,
		})
	}

	return &model.AWSProviderConfig{AWSZones: zones, VpcCIDR: &input.VpcCIDR, EnableIMDSv2: input.EnableIMDSv2}
}

func azureConfig(input *model.AzureProviderConfigInput) *model.AzureProviderConfig {
	zones := make([]*model.AzureZone, 0, len(input.AzureZones))
	for _, zone := range input.AzureZones {
		zones = append(zones, &model.AzureZone{Name: zone.Name, CIDR: zone.CIDR})
	}

	return &model.AzureProviderConfig{
		VnetCIDR:                     &input.VnetCIDR,
		Zones:                        input.Zones,
		AzureZones:                   zones,
		EnableNATGateway:             input.EnableNATGateway,
		IdleConnectionTimeoutMinutes: input.IdleConnectionTimeoutMinutes,
	}
}
