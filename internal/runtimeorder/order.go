package runtimeorder

import (
	"strconv"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/provisionerclient/wire"
)

// labels that Director gets with a runtime.
const (
	labelInstance   = "broker_instance_id"
	labelSubAccount = "global_subaccount_id"
)

// New returns the order for the instance. The credentials that it is run with are left open.
func New(instance environment.Instance) (*wire.ProvisionRuntimeInput, error) {
	cluster := instance.Request.Cluster

	provider, err := providerConfig(instance.Provider, cluster)
	if err != nil {
		return nil, err
	}

	order := &wire.GardenerConfigInput{
		Name:                   instance.ShootName,
		KubernetesVersion:      cluster.KubernetesVersion,
		Provider:               instance.Provider,
		Region:                 instance.Region,
		MachineType:            cluster.MachineType,
		DiskType:               &cluster.VolumeType,
		VolumeSizeGB:           &cluster.VolumeSizeGB,
		WorkerCidr:             cluster.NodesCIDR,
		AutoScalerMin:          cluster.AutoScalerMin,
		AutoScalerMax:          cluster.AutoScalerMax,
		MaxSurge:               cluster.MaxSurge,
		MaxUnavailable:         cluster.MaxUnavailable,
		Purpose:                &cluster.Purpose,
		ProviderSpecificConfig: provider,
		OidcConfig:             oidcOf(cluster.OIDC),
	}

	if cluster.LicenceType != "" {
		order.LicenceType = &cluster.LicenceType
	}

	if cluster.PodsCIDR != "" {
		order.PodsCidr = &cluster.PodsCIDR
	}

	if cluster.ServicesCIDR != "" {
		order.ServicesCidr = &cluster.ServicesCIDR
	}

	labels := map[string]any{labelInstance: instance.ID, labelSubAccount: instance.SubAccountID}

	return &wire.ProvisionRuntimeInput{
		RuntimeInput:  &wire.RuntimeInput{Name: instance.Name, Labels: labels},
		ClusterConfig: &wire.ClusterConfigInput{GardenerConfig: order, Administrators: cluster.Administrators},
	}, nil
}

func providerConfig(provider string, cluster environment.Cluster) (*wire.ProviderSpecificInput, error) {
	switch provider {
	case "aws":
		zones, err := awsZones(cluster)
		if err != nil {
			return nil, err
		}

		return &wire.ProviderSpecificInput{
			AwsConfig: &wire.AWSProviderConfigInput{VpcCidr: cluster.NodesCIDR, AwsZones: zones},
		}, nil
	case "azure":
		zones, err := azureZones(cluster)
		if err != nil {
			return nil, err
		}

		return &wire.ProviderSpecificInput{
			AzureConfig: &wire.AzureProviderConfigInput{VnetCidr: cluster.NodesCIDR, AzureZones: zones},
		}, nil
	case "gcp":
		return &wire.ProviderSpecificInput{GcpConfig: &wire.GCPProviderConfigInput{Zones: cluster.Zones}}, nil
	default:
		return nil, failure.New(failure.Internal, "there is no order for provider %q", provider)
	}
}

func awsZones(cluster environment.Cluster) ([]*wire.AWSZoneInput, error) {
	ranges, err := split(cluster.NodesCIDR, len(cluster.Zones))
	if err != nil {
		return nil, err
	}

	zones := make([]*wire.AWSZoneInput, 0, len(cluster.Zones))
	for i, name := range cluster.Zones {
		zones = append(zones, &wire.AWSZoneInput{
			Name: name, WorkerCidr: ranges[i].workers, PublicCidr: ranges[i].public, InternalCidr: ranges[i].internal,
		})
	}

	return zones, nil
}

// azureZones names zones by numbers.
func azureZones(cluster environment.Cluster) ([]*wire.AzureZoneInput, error) {
	ranges, err := split(cluster.NodesCIDR, len(cluster.Zones))
	if err != nil {
		return nil, err
	}

	zones := make([]*wire.AzureZoneInput, 0, len(cluster.Zones))

	for i, name := range cluster.Zones {
		number, err := strconv.Atoi(name)
		if err != nil {
			return nil, failure.Wrap(failure.Internal, err, "zone %q of Azure is no number", name)
		}

		zones = append(zones, &wire.AzureZoneInput{Name: number, Cidr: ranges[i].workers})
	}

	return zones, nil
}
