package validation_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
)

const (
	wrongPart = "providerSpecificConfig must contain the configuration for provider azure and no other"
	noRange   = "must be an IPv4 range such as 10.250.0.0/16, not "
)

func TestProvisionProvider(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		config func() *spec.Cluster
		change func(config *spec.Cluster, parts *spec.Provider)
		want   string
	}{
		"UnknownProvider": {
			reason: "The provider must be known.", config: azureCluster,
			change: func(config *spec.Cluster, _ *spec.Provider) { config.Provider = "alicloud" },
			want:   `provider must be one of aws, azure, gcp, openstack, not "alicloud"`,
		},
		"OtherPart": {
			reason: "The configuration must match the provider.", config: azureCluster,
			change: func(_ *spec.Cluster, parts *spec.Provider) {
				*parts = *gcpCluster().ProviderSpecificConfig
			},
			want: wrongPart,
		},
		"TwoParts": {
			reason: "A configuration for a second provider would be ignored.", config: azureCluster,
			change: func(_ *spec.Cluster, parts *spec.Provider) {
				parts.GCPConfig = gcpCluster().ProviderSpecificConfig.GCPConfig
			},
			want: wrongPart,
		},
		"NoPart": {
			reason: "The configuration of the provider contains the zones and networks.", config: azureCluster,
			change: func(_ *spec.Cluster, parts *spec.Provider) {
				*parts = spec.Provider{}
			},
			want: wrongPart,
		},
		"NilPart": {
			reason: "An order that did not pass GraphQL may lack the object.", config: azureCluster,
			change: func(config *spec.Cluster, _ *spec.Provider) {
				config.ProviderSpecificConfig = nil
			},
			want: wrongPart,
		},
		"RangeSyntax": {
			reason: "An invalid range is reported once and not compared with others.", config: azureCluster,
			change: func(config *spec.Cluster, _ *spec.Provider) {
				config.WorkerCIDR = "10.250.0.0"
			},
			want: "workerCidr " + noRange + `"10.250.0.0"`,
		},
		"RangeIPv6": {
			reason: "Networks must be IPv4.", config: azureCluster,
			change: func(config *spec.Cluster, _ *spec.Provider) {
				config.PodsCIDR = new("fd00::/48")
			},
			want: "podsCidr " + noRange + `"fd00::/48"`,
		},
		"RangeNotCanonical": {
			reason: "A range must be written with its first address.", config: azureCluster,
			change: func(config *spec.Cluster, _ *spec.Provider) {
				config.WorkerCIDR = "10.250.0.1/16"
			},
			want: "workerCidr must start at the first address of its range: 10.250.0.0/16, not 10.250.0.1/16",
		},
		"PodsOverlapNodes": {
			reason: "The ranges of nodes, pods and services must not overlap.", config: azureCluster,
			change: func(config *spec.Cluster, _ *spec.Provider) {
				config.PodsCIDR = new("10.0.0.0/8")
			},
			want: "podsCidr overlaps azureConfig.vnetCidr, which is 10.250.0.0/16; " +
				"servicesCidr overlaps podsCidr, which is 10.0.0.0/8",
		},
		"WorkersOutside": {
			reason: "The nodes' range is within the virtual network.", config: azureCluster,
			change: func(config *spec.Cluster, _ *spec.Provider) {
				config.WorkerCIDR = "10.240.0.0/12"
			},
			want: "workerCidr must be within azureConfig.vnetCidr, which is 10.250.0.0/16",
		},
		"AzureZones": {
			reason: "Each zone has its own number and its own range within the network.", config: azureCluster,
			change: func(_ *spec.Cluster, parts *spec.Provider) {
				parts.AzureConfig.AzureZones = []*spec.AzureZone{
					{Name: 1, CIDR: "10.250.0.0/19"}, {Name: 1, CIDR: "10.250.16.0/20"}, {Name: 0, CIDR: "10.251.0.0/19"},
				}
			},
			want: "azureConfig.azureZones[2].name must be at least 1; " +
				`azureConfig.azureZones[1] repeats "1"; ` +
				"azureConfig.azureZones[2].cidr must be within azureConfig.vnetCidr, which is 10.250.0.0/16; " +
				"azureConfig.azureZones[1].cidr overlaps azureConfig.azureZones[0].cidr, which is 10.250.0.0/19",
		},
		"AzureZonesTwice": {
			reason: "The two lists of zones cannot be combined.", config: azureCluster,
			change: func(_ *spec.Cluster, parts *spec.Provider) {
				parts.AzureConfig.Zones = []string{"1"}
			},
			want: "azureConfig.azureZones cannot be combined with azureConfig.zones",
		},
		"AzureWithoutZones": {
			reason: "Machines on Azure may have no zone.", config: azureCluster,
			change: func(_ *spec.Cluster, parts *spec.Provider) {
				parts.AzureConfig.AzureZones = nil
			},
		},
		"AzureTimeout": {
			reason: "Azure accepts 4 to 120 minutes.", config: azureCluster,
			change: func(_ *spec.Cluster, parts *spec.Provider) {
				parts.AzureConfig.IdleConnectionTimeoutMinutes = new(3)
			},
			want: "azureConfig.idleConnectionTimeoutMinutes must be between 4 and 120",
		},
		"AWS": {
			reason: "An order with all fields for AWS is valid.", config: awsCluster,
		},
		"AWSWithoutZones": {
			reason: "Subnets on AWS belong to zones, so at least one is required.", config: awsCluster,
			change: func(_ *spec.Cluster, parts *spec.Provider) { parts.AWSConfig.AWSZones = nil },
			want:   "awsConfig.awsZones must not be empty",
		},
		"AWSNullZone": {
			reason: "The schema allows null as a zone.", config: awsCluster,
			change: func(_ *spec.Cluster, parts *spec.Provider) {
				parts.AWSConfig.AWSZones = []*spec.AWSZone{nil}
			},
			want: "awsConfig.awsZones[0] must not be null",
		},
		"AWSZones": {
			reason: "The three ranges of a zone are within the network and do not overlap.", config: awsCluster,
			change: func(_ *spec.Cluster, parts *spec.Provider) {
				zone := parts.AWSConfig.AWSZones[0]
				zone.Name, zone.PublicCIDR, zone.InternalCIDR = "", zone.WorkerCIDR, "10.0.0.0/20"
			},
			want: "awsConfig.awsZones[0] must not be empty; " +
				"awsConfig.awsZones[0].internalCidr must be within awsConfig.vpcCidr, which is 10.250.0.0/16; " +
				"awsConfig.awsZones[0].publicCidr overlaps awsConfig.awsZones[0].workerCidr, which is 10.250.0.0/19",
		},
		"GCP": {
			reason: "An order with all fields for GCP is valid.", config: gcpCluster,
		},
		"GCPPodsOverlapNodes": {
			reason: "On GCP the nodes' range is the whole network.", config: gcpCluster,
			change: func(config *spec.Cluster, _ *spec.Provider) {
				config.PodsCIDR = new("10.250.0.0/24")
			},
			want: "podsCidr overlaps workerCidr, which is 10.250.0.0/16",
		},
		"GCPZones": {
			reason: "Zones must not be empty or repeated.", config: gcpCluster,
			change: func(_ *spec.Cluster, parts *spec.Provider) {
				parts.GCPConfig.Zones = []string{"europe-west3-a", "", "europe-west3-a"}
			},
			want: `gcpConfig.zones[1] must not be empty; gcpConfig.zones[2] repeats "europe-west3-a"`,
		},
		"GCPWithoutZones": {
			reason: "The control plane on GCP uses the first zone.", config: gcpCluster,
			change: func(_ *spec.Cluster, parts *spec.Provider) { parts.GCPConfig.Zones = nil },
			want:   "gcpConfig.zones must not be empty",
		},
		"OpenStackDisk": {
			reason: "On OpenStack the machine type determines the disk.", config: openStackCluster,
			change: func(config *spec.Cluster, _ *spec.Provider) { config.VolumeSizeGB = new(50) },
			want:   "diskType and volumeSizeGB cannot be chosen with openstack",
		},
		"OpenStack": {
			reason: "An order with all fields for OpenStack is valid.", config: openStackCluster,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			config := tc.config()
			if tc.change != nil {
				tc.change(config, config.ProviderSpecificConfig)
			}

			assertProblems(t, tc.reason, tc.want, validation.Provision(order(config), validation.Rules{Project: "kyma"}))
		})
	}
}

func awsCluster() *spec.Cluster {
	config := azureCluster()
	config.Provider = "aws"
	config.ProviderSpecificConfig = &spec.Provider{AWSConfig: &spec.AWS{
		VpcCIDR: "10.250.0.0/16",
		AWSZones: []*spec.AWSZone{{
			Name: "eu-central-1a", WorkerCIDR: "10.250.0.0/19", PublicCIDR: "10.250.32.0/20", InternalCIDR: "10.250.48.0/20",
		}},
	}}

	return config
}

func gcpCluster() *spec.Cluster {
	config := azureCluster()
	config.Provider = "gcp"
	config.ProviderSpecificConfig = &spec.Provider{
		GCPConfig: &spec.GCP{Zones: []string{"europe-west3-a", "europe-west3-b"}},
	}

	return config
}

func openStackCluster() *spec.Cluster {
	config := azureCluster()
	config.Provider, config.DiskType, config.VolumeSizeGB = "openstack", nil, nil
	config.ProviderSpecificConfig = &spec.Provider{
		OpenStackConfig: &spec.OpenStack{Zones: []string{"eu-de-1a"}, LoadBalancerProvider: "f5"},
	}

	return config
}
