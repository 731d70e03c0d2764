package model

// ConfigOf returns the order of a cluster in the form in which it is read.
func ConfigOf(order *GardenerConfigInput) *GardenerConfig {
	return &GardenerConfig{
		Name:                                &order.Name,
		KubernetesVersion:                   &order.KubernetesVersion,
		TargetSecret:                        &order.TargetSecret,
		Provider:                            &order.Provider,
		Region:                              &order.Region,
		Seed:                                order.Seed,
		MachineType:                         &order.MachineType,
		MachineImage:                        order.MachineImage,
		MachineImageVersion:                 order.MachineImageVersion,
		DiskType:                            order.DiskType,
		VolumeSizeGB:                        order.VolumeSizeGB,
		WorkerCIDR:                          &order.WorkerCIDR,
		PodsCIDR:                            order.PodsCIDR,
		ServicesCIDR:                        order.ServicesCIDR,
		AutoScalerMin:                       &order.AutoScalerMin,
		AutoScalerMax:                       &order.AutoScalerMax,
		MaxSurge:                            &order.MaxSurge,
		MaxUnavailable:                      &order.MaxUnavailable,
		Purpose:                             order.Purpose,
		LicenceType:                         order.LicenceType,
		EnableKubernetesVersionAutoUpdate:   order.EnableKubernetesVersionAutoUpdate,
		EnableMachineImageVersionAutoUpdate: order.EnableMachineImageVersionAutoUpdate,
		ProviderSpecificConfig:              providerConfigOf(order.ProviderSpecificConfig),
		DNSConfig:                           dnsConfigOf(order.DNSConfig),
		OIDCConfig:                          (*OIDCConfig)(order.OIDCConfig),
		ExposureClassName:                   order.ExposureClassName,
		ShootNetworkingFilterDisabled:       order.ShootNetworkingFilterDisabled,
		ControlPlaneFailureTolerance:        order.ControlPlaneFailureTolerance,
		EUAccess:                            order.EUAccess,
		AdditionalWorkers:                   additionalWorkersOf(order.AdditionalWorkers),
	}
}

func additionalWorkersOf(order []*WorkerPoolInput) []*WorkerPool {
	var pools []*WorkerPool
	for _, pool := range order {
		pools = append(pools, (*WorkerPool)(pool))
	}

	return pools
}

func providerConfigOf(order *ProviderSpecificInput) ProviderSpecificConfig {
	switch {
	case order == nil:
		return nil
	case order.AWSConfig != nil:
		return awsConfigOf(order.AWSConfig)
	case order.AzureConfig != nil:
		return azureConfigOf(order.AzureConfig)
	case order.GCPConfig != nil:
		return (*GCPProviderConfig)(order.GCPConfig)
	case order.OpenStackConfig != nil:
		return openStackConfigOf(order.OpenStackConfig)
	default:
		return nil
	}
}

func awsConfigOf(order *AWSProviderConfigInput) *AWSProviderConfig {
	config := &AWSProviderConfig{VpcCIDR: &order.VpcCIDR, EnableIMDSv2: order.EnableIMDSv2, AWSZones: []*AWSZone{}}

	for _, zone := range order.AWSZones {
		config.AWSZones = append(config.AWSZones, &AWSZone{
			Name: &zone.Name, PublicCIDR: &zone.PublicCIDR, InternalCIDR: &zone.InternalCIDR, WorkerCIDR: &zone.WorkerCIDR,
		})
	}

	return config
}

func azureConfigOf(order *AzureProviderConfigInput) *AzureProviderConfig {
	config := &AzureProviderConfig{
		VnetCIDR: &order.VnetCIDR, Zones: order.Zones, EnableNATGateway: order.EnableNATGateway,
		IdleConnectionTimeoutMinutes: order.IdleConnectionTimeoutMinutes,
	}

	for _, zone := range order.AzureZones {
		config.AzureZones = append(config.AzureZones, (*AzureZone)(zone))
	}

	return config
}

func openStackConfigOf(order *OpenStackProviderConfigInput) *OpenStackProviderConfig {
	config := &OpenStackProviderConfig{Zones: order.Zones, LoadBalancerProvider: order.LoadBalancerProvider}

	if order.FloatingPoolName != nil {
		config.FloatingPoolName = *order.FloatingPoolName
	}

	if order.CloudProfileName != nil {
		config.CloudProfileName = *order.CloudProfileName
	}

	return config
}

func dnsConfigOf(order *DNSConfigInput) *DNSConfig {
	if order == nil {
		return nil
	}

	config := &DNSConfig{Domain: order.Domain}

	for _, provider := range order.Providers {
		config.Providers = append(config.Providers, (*DNSProvider)(provider))
	}

	return config
}
