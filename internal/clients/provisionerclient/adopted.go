package provisionerclient

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/utils/ptr"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/environment"
)

// Adopted is a runtime that the broker takes over from the Kyma Environment Broker.
type Adopted struct {
	ShootName, Provider, Region string
	// Cluster contains the fields that the Provisioner stores. It lacks the administrators, because the Provisioner does not
	// return them.
	Cluster environment.Cluster
}

// Adopted returns the fields of a runtime that the broker needs to take it over.
func (c *Client) Adopted(ctx context.Context, tenant, runtimeID string) (Adopted, error) {
	call := c.call("describe the runtime", Caller{Tenant: tenant})

	answer, err := wire.AdoptedCluster(ctx, call, runtimeID)
	if err != nil {
		return Adopted{}, fmt.Errorf("reading the cluster configuration of runtime %s: %w", runtimeID, err)
	}

	if answer.Result == nil || answer.Result.RuntimeConfiguration == nil || answer.Result.RuntimeConfiguration.ClusterConfig == nil {
		return Adopted{}, call.missing("the configuration of the cluster")
	}

	return adoptedOf(answer.Result.RuntimeConfiguration.ClusterConfig), nil
}

// adoptedOf converts the Provisioner's cluster configuration to an Adopted.
func adoptedOf(config *wire.AdoptedClusterFields) Adopted {
	found := Adopted{
		ShootName: valueOf(config.Name), Provider: valueOf(config.Provider), Region: valueOf(config.Region),
		Cluster: environment.Cluster{
			KubernetesVersion: valueOf(config.KubernetesVersion), TargetSecret: valueOf(config.TargetSecret), MachineType: valueOf(config.MachineType),
			VolumeType: valueOf(config.DiskType), VolumeSizeGB: ptr.Deref(config.VolumeSizeGB, 0), NodesCIDR: valueOf(config.WorkerCidr),
			PodsCIDR: valueOf(config.PodsCidr), ServicesCIDR: valueOf(config.ServicesCidr), AutoScalerMin: ptr.Deref(config.AutoScalerMin, 0),
			AutoScalerMax: ptr.Deref(config.AutoScalerMax, 0), MaxSurge: ptr.Deref(config.MaxSurge, 0),
			MaxUnavailable: ptr.Deref(config.MaxUnavailable, 0),
			Purpose:        valueOf(config.Purpose), LicenceType: valueOf(config.LicenceType), EUAccess: ptr.Deref(config.EuAccess, false),
		},
	}

	if oidc := config.OidcConfig; oidc != nil && oidc.IssuerURL != "" {
		found.Cluster.OIDC = &environment.OIDC{
			ClientID: oidc.ClientID, IssuerURL: oidc.IssuerURL, GroupsClaim: oidc.GroupsClaim, UsernameClaim: oidc.UsernameClaim,
			UsernamePrefix: oidc.UsernamePrefix, SigningAlgs: oidc.SigningAlgs,
		}
	}

	if config.ProviderSpecificConfig != nil {
		addProvider(&found.Cluster, *config.ProviderSpecificConfig, valueOf(config.ExposureClassName))
	}

	return found
}

// addProvider sets the provider-specific fields of the cluster.
func addProvider(cluster *environment.Cluster, provider wire.AdoptedProvider, exposureClass string) {
	switch config := provider.(type) {
	case *wire.AdoptedProviderGCPProviderConfig:
		cluster.Zones = config.Zones
	case *wire.AdoptedProviderAzureProviderConfig:
		cluster.Zones = config.Zones

		for _, zone := range config.AzureZones {
			cluster.Zones = append(cluster.Zones, strconv.Itoa(zone.Name))
		}
	case *wire.AdoptedProviderAWSProviderConfig:
		for _, zone := range config.AwsZones {
			if zone != nil {
				cluster.Zones = append(cluster.Zones, valueOf(zone.Name))
			}
		}
	case *wire.AdoptedProviderOpenStackProviderConfig:
		cluster.Zones = config.Zones
		cluster.OpenStack = &environment.OpenStack{
			CloudProfileName: config.CloudProfileName, FloatingPoolName: config.FloatingPoolName,
			LoadBalancerProvider: config.LoadBalancerProvider, ExposureClassName: exposureClass,
		}
	}
}
