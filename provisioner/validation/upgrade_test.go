package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
)

// present returns a cluster before the upgrade, with values in all fields that an upgrade must not change.
func present(config *spec.Cluster) spec.ClusterConfig {
	config.KubernetesVersion = "1.34.5"
	config.ControlPlaneFailureTolerance, config.EUAccess = new("zone"), new(true)
	config.DNSConfig = &spec.DNS{Domain: "c.example.com"}
	config.MachineImage, config.MachineImageVersion = new("gardenlinux"), new("1592.1.0")
	config.OIDCConfig = &spec.OIDC{ClientID: "client", IssuerURL: "https://issuer.example.com", UsernameClaim: "sub"}

	return spec.ClusterConfig{GardenerConfig: config, Administrators: []string{"jane@example.com"}}
}

func TestUpgradeShoot(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason  string
		cluster func() *spec.Cluster
		upgrade spec.Upgrade
		want    func(cluster *spec.ClusterConfig)
	}{
		"Nothing": {
			reason: "Omitted fields do not change. An earlier version lost tolerance, domain, access and administrators.",
			want:   func(*spec.ClusterConfig) {},
		},
		"Everything": {
			reason: "Each given field is replaced.",
			upgrade: spec.Upgrade{
				GardenerConfig: &spec.ClusterUpgrade{
					KubernetesVersion: new("1.35.2"), MachineType: new("other"), DiskType: new("Premium_LRS"), VolumeSizeGB: new(99),
					AutoScalerMin: new(4), AutoScalerMax: new(9), MachineImageVersion: new("1877.1.0"), MaxSurge: new(2), MaxUnavailable: new(1),
					Purpose: new("production"), EnableKubernetesVersionAutoUpdate: new(true), EnableMachineImageVersionAutoUpdate: new(true),
					ExposureClassName: new("internet"), ShootNetworkingFilterDisabled: new(false), OIDCConfig: &spec.OIDC{},
				},
				Administrators: []string{},
			},
			want: func(cluster *spec.ClusterConfig) {
				config := cluster.GardenerConfig
				config.KubernetesVersion, config.MachineType = "1.35.2", "other"
				config.DiskType, config.VolumeSizeGB = new("Premium_LRS"), new(99)
				config.AutoScalerMin, config.AutoScalerMax, config.MachineImageVersion = 4, 9, new("1877.1.0")
				config.MaxSurge, config.MaxUnavailable, config.Purpose = 2, 1, new("production")
				config.EnableKubernetesVersionAutoUpdate, config.EnableMachineImageVersionAutoUpdate = new(true), new(true)
				config.ExposureClassName, config.ShootNetworkingFilterDisabled = new("internet"), new(false)
				config.OIDCConfig = &spec.OIDC{}
				cluster.Administrators = []string{}
			},
		},
		"OtherImage": {
			reason:  "Another image drops the version of the earlier one.",
			upgrade: spec.Upgrade{GardenerConfig: &spec.ClusterUpgrade{MachineImage: new("ubuntu")}},
			want: func(cluster *spec.ClusterConfig) {
				cluster.GardenerConfig.MachineImage, cluster.GardenerConfig.MachineImageVersion = new("ubuntu"), nil
			},
		},
		"SameImage": {
			reason:  "If the image is the same, its version does not change.",
			upgrade: spec.Upgrade{GardenerConfig: &spec.ClusterUpgrade{MachineImage: new("gardenlinux")}},
			want:    func(*spec.ClusterConfig) {},
		},
		"NATGateway": {
			reason: "Azure's NAT gateway can be enabled later; omitted zones do not change.",
			upgrade: spec.Upgrade{GardenerConfig: &spec.ClusterUpgrade{
				ProviderSpecificConfig: &spec.Provider{AzureConfig: &spec.Azure{
					VnetCIDR: "10.250.0.0/16", EnableNATGateway: new(true), IdleConnectionTimeoutMinutes: new(9),
				}},
			}},
			want: func(cluster *spec.ClusterConfig) {
				azure := cluster.GardenerConfig.ProviderSpecificConfig.AzureConfig
				azure.EnableNATGateway, azure.IdleConnectionTimeoutMinutes = new(true), new(9)
			},
		},
		"IMDSv2": {
			reason:  "Machines on AWS can require tokens later.",
			cluster: awsCluster,
			upgrade: spec.Upgrade{GardenerConfig: &spec.ClusterUpgrade{
				ProviderSpecificConfig: &spec.Provider{AWSConfig: func() *spec.AWS {
					same := awsCluster().ProviderSpecificConfig.AWSConfig
					same.EnableIMDSv2 = new(true)

					return same
				}()},
			}},
			want: func(cluster *spec.ClusterConfig) {
				cluster.GardenerConfig.ProviderSpecificConfig.AWSConfig.EnableIMDSv2 = new(true)
			},
		},
		"OpenPatch": {
			reason:  "A version without a patch is not lower than one with a patch.",
			upgrade: spec.Upgrade{GardenerConfig: &spec.ClusterUpgrade{KubernetesVersion: new("1.34")}},
			want:    func(cluster *spec.ClusterConfig) { cluster.GardenerConfig.KubernetesVersion = "1.34" },
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if tc.cluster == nil {
				tc.cluster = azureCluster
			}

			if tc.upgrade.GardenerConfig == nil {
				tc.upgrade.GardenerConfig = &spec.ClusterUpgrade{}
			}

			before, want := present(tc.cluster()), present(tc.cluster())
			tc.want(&want)

			got, err := validation.UpgradeShoot(before, tc.upgrade)
			if err != nil {
				t.Fatalf("%s\nUpgradeShoot(): %v", tc.reason, err)
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\nUpgradeShoot(): -want +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(present(tc.cluster()), before); diff != "" {
				t.Errorf("the current cluster was modified, -want +got:\n%s", diff)
			}
		})
	}
}

func TestUpgradeShootRefuses(t *testing.T) {
	t.Parallel()

	azure := func(change func(config *spec.Azure)) *spec.ClusterUpgrade {
		config := azureCluster().ProviderSpecificConfig.AzureConfig
		change(config)

		return &spec.ClusterUpgrade{ProviderSpecificConfig: &spec.Provider{AzureConfig: config}}
	}

	cases := map[string]struct {
		reason         string
		cluster        func() *spec.Cluster
		upgrade        *spec.ClusterUpgrade
		administrators []string
		want           string
	}{
		"Missing": {
			reason: "An upgrade that did not pass GraphQL may lack required objects: this must be reported as a problem and must not cause a panic.",
			want:   "gardenerConfig is missing",
		},
		"EmptyTexts": {
			reason: "An empty text is ambiguous.",
			upgrade: &spec.ClusterUpgrade{
				KubernetesVersion: new(""), MachineType: new(""), DiskType: new(""), Purpose: new(""),
			},
			want: "kubernetesVersion must not be empty; machineType must not be empty; diskType must not be empty; " +
				"purpose must not be empty",
		},
		"Downgrade": {
			reason: "Kubernetes cannot be downgraded.", upgrade: &spec.ClusterUpgrade{KubernetesVersion: new("1.34.1")},
			want: "kubernetesVersion must not be lower than the current version 1.34.5",
		},
		"Skip": {
			reason:  "Minor versions cannot be skipped.",
			upgrade: &spec.ClusterUpgrade{KubernetesVersion: new("1.36")},
			want:    "kubernetesVersion must not skip a minor version: the current version is 1.34.5",
		},
		"Machines": {
			reason: "The rules of an order apply to the merged cluster.", cluster: gcpCluster,
			upgrade: &spec.ClusterUpgrade{AutoScalerMin: new(2), AutoScalerMax: new(1), MaxSurge: new(0), MaxUnavailable: new(0)},
			want: "autoScalerMin must not be more than autoScalerMax; " +
				"maxSurge and maxUnavailable must not both be 0, because no machine could then be replaced; " +
				"autoScalerMax must be at least the number of zones, which is 2",
		},
		"Purpose": {
			reason: "Gardener has four purposes.", upgrade: &spec.ClusterUpgrade{Purpose: new("fun")},
			want: `purpose must be one of evaluation, testing, development, production, not "fun"`,
		},
		"IdentityProvider": {
			reason: "A configuration that API servers would reject is invalid.",
			upgrade: &spec.ClusterUpgrade{OIDCConfig: &spec.OIDC{
				IssuerURL: "http://issuer.example.com", SigningAlgs: []string{"HS256"},
			}},
			want: "oidcConfig.clientID must not be empty; oidcConfig.usernameClaim must not be empty; " +
				`oidcConfig.issuerURL must be an https URL without user, query or fragment, not "http://issuer.example.com"; ` +
				`oidcConfig.signingAlgs[0] must be one of RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512, not "HS256"`,
		},
		"Administrators": {
			reason: "The rules of an order apply to administrators.", upgrade: &spec.ClusterUpgrade{},
			administrators: []string{""}, want: "administrators[0] must not be empty",
		},
		"OpenStackDisk": {
			reason: "On OpenStack the machine type determines the disk.", cluster: openStackCluster,
			upgrade: &spec.ClusterUpgrade{VolumeSizeGB: new(50)}, want: "diskType and volumeSizeGB cannot be chosen with openstack",
		},
		"OtherProvider": {
			reason: "The provider cannot be changed.", cluster: gcpCluster,
			upgrade: azure(func(*spec.Azure) {}),
			want:    "providerSpecificConfig must contain the configuration for provider gcp and no other",
		},
		"AzureNetwork": {
			reason: "Networks and zones cannot be changed.",
			upgrade: azure(func(config *spec.Azure) {
				config.VnetCIDR = "10.0.0.0/8"
				config.AzureZones = append(config.AzureZones, &spec.AzureZone{Name: 3, CIDR: "10.250.128.0/19"})
				config.IdleConnectionTimeoutMinutes = new(1)
			}),
			want: "azureConfig.vnetCidr cannot be changed after the cluster is created; " +
				"azureConfig.azureZones cannot be changed after the cluster is created; " +
				"azureConfig.idleConnectionTimeoutMinutes must be between 4 and 120",
		},
		"AWSZones": {
			reason: "Zones on AWS cannot be added.", cluster: awsCluster,
			upgrade: &spec.ClusterUpgrade{ProviderSpecificConfig: &spec.Provider{
				AWSConfig: &spec.AWS{VpcCIDR: "10.250.0.0/16"},
			}},
			want: "awsConfig.awsZones cannot be changed after the cluster is created",
		},
		"GCPZones": {
			reason: "Zones on GCP cannot be replaced.", cluster: gcpCluster,
			upgrade: &spec.ClusterUpgrade{ProviderSpecificConfig: &spec.Provider{
				GCPConfig: &spec.GCP{Zones: []string{"europe-west3-c"}},
			}},
			want: "gcpConfig.zones cannot be changed after the cluster is created",
		},
		"OpenStack": {
			reason: "The settings of OpenStack cannot be changed.", cluster: openStackCluster,
			upgrade: &spec.ClusterUpgrade{ProviderSpecificConfig: &spec.Provider{
				OpenStackConfig: &spec.OpenStack{
					Zones: []string{"eu-de-1a"}, LoadBalancerProvider: "octavia", FloatingPoolName: new("other"), CloudProfileName: new("other"),
				},
			}},
			want: "openStackConfig.loadBalancerProvider cannot be changed after the cluster is created; " +
				"openStackConfig.floatingPoolName cannot be changed after the cluster is created; " +
				"openStackConfig.cloudProfileName cannot be changed after the cluster is created",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if tc.cluster == nil {
				tc.cluster = azureCluster
			}

			_, err := validation.UpgradeShoot(present(tc.cluster()), spec.Upgrade{
				GardenerConfig: tc.upgrade, Administrators: tc.administrators,
			})
			if !failure.Is(err, failure.Invalid) {
				t.Fatalf("%s\nwant an error of kind %s, got %v", tc.reason, failure.Invalid, err)
			}

			if diff := cmp.Diff("the upgrade is invalid: "+tc.want, err.Error()); diff != "" {
				t.Errorf("%s\nUpgradeShoot(): -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUpgradeShootOfUncheckedPools upgrades an adopted cluster with pools that an order could not contain but that Gardener accepts. Pools
// that the upgrade does not change must not be validated.
func TestUpgradeShootOfUncheckedPools(t *testing.T) {
	t.Parallel()

	idle, narrow := gpuPool(), gpuPool()
	idle.Name, idle.AutoScalerMax = "idle", 0
	narrow.Name, narrow.AutoScalerMax = "narrow", 1

	cluster := func() *spec.Cluster {
		config := gcpCluster() // it has two zones
		config.AutoScalerMin, config.AutoScalerMax = 1, 1
		config.AdditionalWorkers = []*spec.WorkerPool{gpuPool(), idle, narrow}

		return config
	}

	stronger := *narrow
	stronger.MachineType = "other"

	for name, tc := range map[string]struct {
		upgrade *spec.ClusterUpgrade
		want    string
	}{
		"Administrators": {upgrade: &spec.ClusterUpgrade{}},
		"MachineType":    {upgrade: &spec.ClusterUpgrade{MachineType: new("other")}},
		"Repeated": {upgrade: &spec.ClusterUpgrade{
			AutoScalerMin: new(1), AutoScalerMax: new(1), AdditionalWorkers: []*spec.WorkerPool{narrow, gpuPool()},
		}},
		"FirstPool": {upgrade: &spec.ClusterUpgrade{MaxSurge: new(0)}, want: "maxSurge and maxUnavailable must not both be 0, because no machine could then be replaced"},
		"OtherPool": {
			upgrade: &spec.ClusterUpgrade{AdditionalWorkers: []*spec.WorkerPool{idle, &stronger, narrow}},
			want:    `additionalWorkers[1].autoScalerMax must be at least the number of zones, which is 2; additionalWorkers[2].name repeats "narrow"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := validation.UpgradeShoot(present(cluster()), spec.Upgrade{GardenerConfig: tc.upgrade, Administrators: []string{"joe@example.com"}})

			got := ""
			if err != nil {
				got = strings.TrimPrefix(err.Error(), "the upgrade is invalid: ")
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("UpgradeShoot(): -want +got:\n%s", diff)
			}
		})
	}
}
