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
		WorkerCidr:             cluster.NodesCIDR,
		AutoScalerMin:          cluster.AutoScalerMin,
		AutoScalerMax:          cluster.AutoScalerMax,
		MaxSurge:               cluster.MaxSurge,
		MaxUnavailable:         cluster.MaxUnavailable,
		Purpose:                &cluster.Purpose,
		ProviderSpecificConfig: provider,
		OidcConfig:             OIDC(cluster.OIDC),
	}

	if cluster.VolumeType != "" {
		order.DiskType, order.VolumeSizeGB = &cluster.VolumeType, &cluster.VolumeSizeGB
	}

	if cluster.EUAccess {
		order.EuAccess = &cluster.EUAccess
	}

	if cluster.OpenStack != nil {
		order.ExposureClassName = &cluster.OpenStack.ExposureClassName
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
		RuntimeInput:  &wire.RuntimeInput{Name: nameOf(instance), Labels: labels},
		ClusterConfig: &wire.ClusterConfigInput{GardenerConfig: order, Administrators: cluster.Administrators},
	}, nil
}

// OIDC is how the order tells the issuer of a cluster, nil when there is none.
func OIDC(oidc *environment.OIDC) *wire.OIDCConfigInput {
	if oidc == nil {
		return nil
	}

	return &wire.OIDCConfigInput{
		ClientID: oidc.ClientID, IssuerURL: oidc.IssuerURL, GroupsClaim: oidc.GroupsClaim, UsernameClaim: oidc.UsernameClaim,
		UsernamePrefix: oidc.UsernamePrefix, SigningAlgs: oidc.SigningAlgs,
	}
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
	case "openstack":
		return openStackConfig(cluster)
	default:
		return nil, failure.New(failure.Internal, "there is no order for provider %q", provider)
	}
}

func openStackConfig(cluster environment.Cluster) (*wire.ProviderSpecificInput, error) {
	settings := cluster.OpenStack
	if settings == nil {
		return nil, failure.New(failure.Internal, "there are no settings of OpenStack for the order")
	}

	return &wire.ProviderSpecificInput{OpenStackConfig: &wire.OpenStackProviderConfigInput{
		Zones: cluster.Zones, FloatingPoolName: &settings.FloatingPoolName, CloudProfileName: &settings.CloudProfileName,
		LoadBalancerProvider: settings.LoadBalancerProvider,
	}}, nil
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
