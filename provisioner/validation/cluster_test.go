package validation_test

import (
	"math"
	"testing"

	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
)

func TestProvisionCluster(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		change func(config *spec.Cluster)
		want   string
	}{
		"NameTooLong": {
			reason: "The names of Shoot and project together have a limit in Gardener.",
			change: func(config *spec.Cluster) { config.Name = "c-012345678901234567" },
			want:   `name is too long: together with the project name "kyma" it has 24 characters, but the limit is 21`,
		},
		"NameLongest": {
			reason: "21 characters together are allowed.",
			change: func(config *spec.Cluster) { config.Name = "c-012345678901234" },
		},
		"NameSyntax": {
			reason: "The name becomes part of domain names.",
			change: func(config *spec.Cluster) { config.Name = "My_Shoot" },
			want: `name "My_Shoot" is not a valid Shoot name: a lowercase RFC 1123 label must consist of lower case alphanumeric ` +
				`characters or '-', and must start and end with an alphanumeric character ` +
				`(e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
		},
		"NameHyphens": {
			reason: "Two hyphens separate the project's name from the Shoot's in cloud resources.",
			change: func(config *spec.Cluster) { config.Name = "a--b" },
			want:   "name must not contain consecutive hyphens",
		},
		"VersionMinor": {
			reason: "A version without its patch lets Gardener choose the newest patch.",
			change: func(config *spec.Cluster) { config.KubernetesVersion = "1.33" },
		},
		"VersionSyntax": {
			reason: "Gardener does not accept a version with a leading letter.",
			change: func(config *spec.Cluster) { config.KubernetesVersion = "v1.33.2" },
			want:   `kubernetesVersion must look like 1.33 or 1.33.2, not "v1.33.2"`,
		},
		"Empty": {
			reason: "Required texts must not be empty.",
			change: func(config *spec.Cluster) { config.Region, config.MachineType = "", "" },
			want:   "region must not be empty; machineType must not be empty",
		},
		"Binding": {
			reason: "The target secret names a Kubernetes object.",
			change: func(config *spec.Cluster) { config.TargetSecret = "-" },
			want: `targetSecret "-" is not a valid CredentialsBinding name: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric ` +
				`characters, '-' or '.', and must start and end with an alphanumeric character ` +
				`(e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
		},
		"ImageVersionAlone": {
			reason: "An image version requires an image.",
			change: func(config *spec.Cluster) { config.MachineImage = nil },
			want:   "machineImageVersion requires machineImage",
		},
		"DiskTypeAlone": {
			reason: "A disk needs a type and a size; Kyma Provisioner silently dropped a disk without one of them.",
			change: func(config *spec.Cluster) { config.VolumeSizeGB = nil },
			want:   "diskType and volumeSizeGB must be set together",
		},
		"DiskSize": {
			reason: "A disk has at least one gigabyte.",
			change: func(config *spec.Cluster) { config.VolumeSizeGB = new(0) },
			want:   "volumeSizeGB must be between 1 and 2147483647",
		},
		"NoDisk": {
			reason: "Without type and size, the machine type determines the disk.",
			change: func(config *spec.Cluster) { config.DiskType, config.VolumeSizeGB = nil, nil },
		},
		"MinAboveMax": {
			reason: "The maximum must not be below the minimum.",
			change: func(config *spec.Cluster) { config.AutoScalerMin = 11 },
			want:   "autoScalerMin must not be more than autoScalerMax",
		},
		"NegativeCounts": {
			reason: "Numbers of machines must not be negative.",
			change: func(config *spec.Cluster) {
				config.AutoScalerMin, config.MaxSurge, config.MaxUnavailable = -1, -1, -1
			},
			want: "autoScalerMin must be between 0 and 2147483647; maxSurge must be between 0 and 2147483647; " +
				"maxUnavailable must be between 0 and 2147483647",
		},
		"NoMachines": {
			reason: "The system components of a cluster need at least one machine.",
			change: func(config *spec.Cluster) { config.AutoScalerMin, config.AutoScalerMax = 0, 0 },
			want:   "autoScalerMax must be between 1 and 2147483647",
		},
		"HugeCount": {
			reason: "Gardener's integers have 32 bits.",
			change: func(config *spec.Cluster) { config.AutoScalerMax = math.MaxInt32 + 1 },
			want:   "autoScalerMax must be between 1 and 2147483647",
		},
		"FewerMachinesThanZones": {
			reason: "Gardener requires at least one machine per zone.",
			change: func(config *spec.Cluster) { config.AutoScalerMin, config.AutoScalerMax = 1, 1 },
			want:   "autoScalerMax must be at least the number of zones, which is 2",
		},
		"NoRoomForUpdates": {
			reason: "A rolling update must add or remove a machine.",
			change: func(config *spec.Cluster) { config.MaxSurge, config.MaxUnavailable = 0, 0 },
			want:   "maxSurge and maxUnavailable must not both be 0, because no machine could then be replaced",
		},
		"Purpose": {
			reason: "Gardener has four purposes for Shoots of users.",
			change: func(config *spec.Cluster) { config.Purpose = new("infrastructure") },
			want:   `purpose must be one of evaluation, testing, development, production, not "infrastructure"`,
		},
		"EmptyPurpose": {
			reason: "An empty purpose is treated as omitted, as in Kyma Provisioner.",
			change: func(config *spec.Cluster) { config.Purpose = new("") },
		},
		"IdentityProvider": {
			reason: "An identity provider needs a client and an https issuer.",
			change: func(config *spec.Cluster) {
				config.OIDCConfig = &spec.OIDC{IssuerURL: "https://user@issuer.example.com", UsernameClaim: "sub"}
			},
			want: "oidcConfig.clientID must not be empty; " +
				`oidcConfig.issuerURL must be an https URL without user, query or fragment, not "https://user@issuer.example.com"`,
		},
		"NoIdentityProvider": {
			reason: "An empty object means that there is no identity provider.",
			change: func(config *spec.Cluster) {
				config.OIDCConfig = &spec.OIDC{SigningAlgs: []string{}}
			},
		},
		"Domain": {
			reason: "A domain has one primary provider, and each provider has credentials.",
			change: func(config *spec.Cluster) {
				config.DNSConfig = &spec.DNS{Domain: "no domain", Providers: []*spec.DNSProvider{{}, nil}}
			},
			want: `dnsConfig.domain "no domain" is not a domain: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric ` +
				"characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for " +
				"validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'); " +
				"dnsConfig.providers[0].type must not be empty; dnsConfig.providers[0].secretName must not be empty; " +
				"dnsConfig.providers[1] must not be null; dnsConfig.providers must contain exactly one primary provider, not 0",
		},
		"UnmanagedDomain": {
			reason: "Gardener rejects credentials of the type unmanaged, with which nobody manages the records.",
			change: func(config *spec.Cluster) {
				config.DNSConfig = &spec.DNS{Domain: "c.example.com", Providers: []*spec.DNSProvider{{Type: "unmanaged", Primary: true}}}
			},
		},
		"UnmanagedDomainWithCredentials": {
			reason: "Gardener rejects credentials of the type unmanaged, and provider types with the same credentials twice.",
			change: func(config *spec.Cluster) {
				config.DNSConfig = &spec.DNS{Domain: "c.example.com", Providers: []*spec.DNSProvider{
					{Type: "unmanaged", SecretName: "dns"},
					{Type: "aws-route53", SecretName: "dns", Primary: true},
					{Type: "aws-route53", SecretName: "dns"},
				}}
			},
			want: "dnsConfig.providers[0].secretName must be empty for the type unmanaged; dnsConfig.providers[0].primary must be true for the type " +
				"unmanaged; dnsConfig.providers[2].secretName repeats \"dns\" for the type aws-route53",
		},
		"FailureTolerance": {
			reason: "The failure tolerance is a node or a zone.",
			change: func(config *spec.Cluster) { config.ControlPlaneFailureTolerance = new("region") },
			want:   `controlPlaneFailureTolerance must be one of node, zone, not "region"`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			config := azureCluster()
			tc.change(config)
			assertProblems(t, tc.reason, tc.want, validation.Provision(order(config), validation.Rules{Project: "kyma"}))
		})
	}
}

// azureCluster returns a valid cluster on Azure with all optional fields that do not depend on the provider.
func azureCluster() *spec.Cluster {
	return &spec.Cluster{
		Name: "c-1234567", KubernetesVersion: "1.33.2", Provider: "azure", TargetSecret: "azure-pool-1", Region: "westeurope",
		MachineType: "Standard_D4s_v5", MachineImage: new("gardenlinux"), MachineImageVersion: new("1592.1.0"),
		DiskType: new("Standard_LRS"), VolumeSizeGB: new(80),
		WorkerCIDR: "10.250.0.0/16", PodsCIDR: new("10.96.0.0/13"), ServicesCIDR: new("10.104.0.0/13"),
		AutoScalerMin: 3, AutoScalerMax: 10, MaxSurge: 1, MaxUnavailable: 0, Purpose: new("production"),
		ControlPlaneFailureTolerance: new("zone"),
		ProviderSpecificConfig: &spec.Provider{AzureConfig: &spec.Azure{
			VnetCIDR:         "10.250.0.0/16",
			AzureZones:       []*spec.AzureZone{{Name: 1, CIDR: "10.250.0.0/19"}, {Name: 2, CIDR: "10.250.32.0/19"}},
			EnableNATGateway: new(true), IdleConnectionTimeoutMinutes: new(4),
		}},
	}
}
