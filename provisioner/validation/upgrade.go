package validation

import (
	"reflect"

	"github.com/environment-broker/environment-broker/internal/versions"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// UpgradeShoot returns the cluster's configuration after the upgrade: each field that the upgrade sets replaces the current one.
// Its error is one failure.Invalid that lists the fields that are invalid or cannot be changed. Fields that no upgrade can change,
// and worker pools that this upgrade does not change, are not validated again, so that an adopted cluster and a cluster ordered
// under older rules can still be upgraded. UpgradeShoot does not modify the given configuration.
func UpgradeShoot(present spec.ClusterConfig, upgrade spec.Upgrade) (spec.ClusterConfig, error) {
	found := problems{title: "the upgrade is invalid"}

	if !found.sizes(upgrade) {
		return present, found.err()
	}

	if upgrade.GardenerConfig == nil {
		found.add("gardenerConfig", "is missing")

		return present, found.err()
	}

	found.within = "gardenerConfig."
	found.noEmptyTexts(upgrade.GardenerConfig)

	if err := found.err(); err != nil {
		return present, err
	}

	config := merged(*present.GardenerConfig, upgrade.GardenerConfig)
	config.ProviderSpecificConfig = found.providerChange(&config, upgrade.GardenerConfig.ProviderSpecificConfig)

	if upgrade.GardenerConfig.KubernetesVersion != nil {
		found.version(config.KubernetesVersion)
		found.noDowngrade(present.GardenerConfig.KubernetesVersion, config.KubernetesVersion)
	}

	zones := shoot.Zones(&config)
	found.firstPoolChange(present.GardenerConfig, &config, len(zones))
	found.additionalWorkers(&config, zones, present.GardenerConfig.AdditionalWorkers)
	found.sameZones(present.GardenerConfig, &config)
	found.oneOf("purpose", config.Purpose, purposes()...)
	found.identityProvider(upgrade.GardenerConfig.OIDCConfig)

	upgraded := spec.ClusterConfig{GardenerConfig: &config, Administrators: present.Administrators}
	found.within = ""

	if upgrade.Administrators != nil {
		found.administrators("administrators", upgrade.Administrators)
		upgraded.Administrators = upgrade.Administrators
	}

	return upgraded, found.err()
}

// firstPoolChange validates the first worker pool if the upgrade changes it.
func (p *problems) firstPoolChange(present, config *spec.Cluster, zones int) {
	first := shoot.FirstPool(config)
	if reflect.DeepEqual(first, shoot.FirstPool(present)) {
		return
	}

	p.machines("", first, config.Provider)
	p.workers("", first)

	if config.AutoScalerMax != present.AutoScalerMax {
		p.enoughMachines("", config.AutoScalerMax, zones)
	}
}

// UpgradeCluster returns the cluster's configuration with another Kubernetes version. Its error is failure.Invalid.
// UpgradeCluster does not modify the given configuration.
func UpgradeCluster(present spec.ClusterConfig, version string) (spec.ClusterConfig, error) {
	found := problems{title: "the upgrade is invalid", within: "clusterConfig."}
	found.version(version)
	found.noDowngrade(present.GardenerConfig.KubernetesVersion, version)

	cluster := *present.GardenerConfig
	cluster.KubernetesVersion, present.GardenerConfig = version, &cluster

	return present, found.err()
}

// noEmptyTexts rejects an empty kubernetesVersion, machineType, diskType or purpose. An empty string is ambiguous: the client may
// want to keep the value or to remove it.
func (p *problems) noEmptyTexts(upgrade *spec.ClusterUpgrade) {
	for _, text := range []struct {
		field string
		value *string
	}{
		{"kubernetesVersion", upgrade.KubernetesVersion},
		{"machineType", upgrade.MachineType},
		{"diskType", upgrade.DiskType},
		{"purpose", upgrade.Purpose},
	} {
		if text.value != nil {
			p.present(text.field, *text.value)
		}
	}
}

// merged returns the cluster with the fields of the upgrade that are set. It does not merge the configuration for the provider:
// most of its fields cannot be changed, and providerChange handles it.
func merged(config spec.Cluster, upgrade *spec.ClusterUpgrade) spec.Cluster {
	replace(&config.KubernetesVersion, upgrade.KubernetesVersion)
	replace(&config.MachineType, upgrade.MachineType)
	replace(&config.AutoScalerMin, upgrade.AutoScalerMin)
	replace(&config.AutoScalerMax, upgrade.AutoScalerMax)
	replace(&config.MaxSurge, upgrade.MaxSurge)
	replace(&config.MaxUnavailable, upgrade.MaxUnavailable)

	// The version belongs to the image. If the upgrade names a new image without a version, Gardener chooses the newest version.
	if upgrade.MachineImage != nil && (config.MachineImage == nil || *config.MachineImage != *upgrade.MachineImage) {
		config.MachineImage, config.MachineImageVersion = upgrade.MachineImage, nil
	}

	replaceOptional(&config.MachineImageVersion, upgrade.MachineImageVersion)
	replaceOptional(&config.DiskType, upgrade.DiskType)
	replaceOptional(&config.VolumeSizeGB, upgrade.VolumeSizeGB)
	replaceOptional(&config.Purpose, upgrade.Purpose)
	replaceOptional(&config.EnableKubernetesVersionAutoUpdate, upgrade.EnableKubernetesVersionAutoUpdate)
	replaceOptional(&config.EnableMachineImageVersionAutoUpdate, upgrade.EnableMachineImageVersionAutoUpdate)
	replaceOptional(&config.OIDCConfig, upgrade.OIDCConfig)
	replaceOptional(&config.ExposureClassName, upgrade.ExposureClassName)
	replaceOptional(&config.ShootNetworkingFilterDisabled, upgrade.ShootNetworkingFilterDisabled)

	if upgrade.AdditionalWorkers != nil {
		config.AdditionalWorkers = upgrade.AdditionalWorkers
	}

	return config
}

// replace sets a required field to the value of the upgrade. If the upgrade has no value, the field stays unchanged.
func replace[T any](value, by *T) {
	if by != nil {
		*value = *by
	}
}

// replaceOptional sets an optional field to the value of the upgrade. If the upgrade has no value, the field stays unchanged.
func replaceOptional[T any](value **T, by *T) {
	if by != nil {
		*value = by
	}
}

// noDowngrade rejects a version that is lower than the current one, skips a minor version or has another major version. Gardener
// rejects such versions too.
func (p *problems) noDowngrade(present, wanted string) {
	switch upgrade, _ := versions.UpgradeOf(present, wanted); upgrade {
	case versions.Downgrade:
		p.add("kubernetesVersion", "must not be lower than the current version %s", present)
	case versions.Skipping:
		p.add("kubernetesVersion", "must not skip a minor version: the current version is %s", present)
	default:
		// The upgrade is possible, or version has already reported that the wanted version is malformed.
	}
}

// providerChange returns the provider's configuration after the upgrade. It rejects changes to networks and zones, because
// machines are running in them.
func (p *problems) providerChange(config *spec.Cluster, upgrade *spec.Provider) *spec.Provider {
	present := config.ProviderSpecificConfig
	if upgrade == nil || present == nil {
		return present
	}

	if !p.onePart(upgrade, config.Provider) {
		return present
	}

	switch config.Provider {
	case aws:
		return p.awsChange(present.AWSConfig, upgrade.AWSConfig)
	case azure:
		return p.azureChange(present.AzureConfig, upgrade.AzureConfig)
	case gcp:
		p.unchanged("gcpConfig.zones", present.GCPConfig.Zones, upgrade.GCPConfig.Zones)
	case openstack:
		p.openStackChange(present.OpenStackConfig, upgrade.OpenStackConfig)
	}

	return present
}

// awsChange allows an upgrade to change only whether instance metadata requires tokens.
func (p *problems) awsChange(present, upgrade *spec.AWS) *spec.Provider {
	p.unchanged("awsConfig.vpcCidr", present.VpcCIDR, upgrade.VpcCIDR)
	p.unchanged("awsConfig.awsZones", present.AWSZones, upgrade.AWSZones)

	config := *present
	replaceOptional(&config.EnableIMDSv2, upgrade.EnableIMDSv2)

	return &spec.Provider{AWSConfig: &config}
}

// azureChange allows an upgrade to change only the NAT gateway. An upgrade that omits the zones does not change them.
func (p *problems) azureChange(present, upgrade *spec.Azure) *spec.Provider {
	p.unchanged("azureConfig.vnetCidr", present.VnetCIDR, upgrade.VnetCIDR)

	if len(upgrade.Zones) > 0 {
		p.unchanged("azureConfig.zones", present.Zones, upgrade.Zones)
	}

	if len(upgrade.AzureZones) > 0 {
		p.unchanged("azureConfig.azureZones", present.AzureZones, upgrade.AzureZones)
	}

	p.idleTimeout(upgrade.IdleConnectionTimeoutMinutes)

	config := *present
	replaceOptional(&config.EnableNATGateway, upgrade.EnableNATGateway)
	replaceOptional(&config.IdleConnectionTimeoutMinutes, upgrade.IdleConnectionTimeoutMinutes)

	return &spec.Provider{AzureConfig: &config}
}

// openStackChange rejects every change of the OpenStack configuration. An upgrade may omit floatingPoolName and cloudProfileName,
// which are optional.
func (p *problems) openStackChange(present, upgrade *spec.OpenStack) {
	p.unchanged("openStackConfig.zones", present.Zones, upgrade.Zones)
	p.unchanged("openStackConfig.loadBalancerProvider", present.LoadBalancerProvider, upgrade.LoadBalancerProvider)

	if isSet(upgrade.FloatingPoolName) {
		p.unchanged("openStackConfig.floatingPoolName", present.FloatingPoolName, upgrade.FloatingPoolName)
	}

	if isSet(upgrade.CloudProfileName) {
		p.unchanged("openStackConfig.cloudProfileName", present.CloudProfileName, upgrade.CloudProfileName)
	}
}

// unchanged rejects a value that differs from the current one.
func (p *problems) unchanged(field string, present, upgrade any) {
	p.addIf(!reflect.DeepEqual(present, upgrade), field, "cannot be changed after the cluster is created")
}
