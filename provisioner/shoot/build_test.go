package shoot_test

import (
	"slices"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// goldenCase is an order with the golden file of its Shoot.
type goldenCase struct {
	reason  string
	config  func() *spec.Cluster
	options shoot.Options
}

func TestBuild(t *testing.T) {
	t.Parallel()

	everything := shoot.Options{
		Namespace: "garden-kyma", AuditPolicyConfigMap: "audit-policy", AutoUpdateKubernetes: true, AutoUpdateMachineImage: true,
		RequireIMDSv2: true,
		MaintenanceWindows: map[string]gardencorev1beta1.MaintenanceTimeWindow{
			"eu-central-1": {Begin: "030000+0100", End: "040000+0100"},
		},
		Extensions: []string{
			shoot.ExtensionOIDC, shoot.ExtensionDNS, shoot.ExtensionNetworkingFilter, shoot.ExtensionCertificates, "own", "own",
		},
	}
	nothing := shoot.Options{Namespace: "garden-kyma"}

	cases := map[string]goldenCase{
		"aws": {
			reason: "Every field of an order is used, and the options set the fields that it omits.",
			config: awsOrder, options: everything,
		},
		"aws-without-imdsv2": {
			reason: "The order overrides the options.",
			config: func() *spec.Cluster {
				order := awsOrder()
				order.ProviderSpecificConfig.AWSConfig.EnableIMDSv2 = new(false)
				order.EnableKubernetesVersionAutoUpdate = new(false)
				order.ShootNetworkingFilterDisabled = new(false)
				order.Purpose = new("development")

				return order
			},
			options: everything,
		},
		"azure": {
			reason: "Each zone on Azure has a range and a NAT gateway.",
			config: azureOrder, options: nothing,
		},
		"azure-without-nat": {
			reason: "A NAT gateway is optional.",
			config: func() *spec.Cluster {
				order := azureOrder()
				order.ProviderSpecificConfig.AzureConfig.EnableNATGateway = nil

				return order
			},
			options: nothing,
		},
		"azure-shared-range": {
			reason: "Zones without ranges share the workers' range and one NAT gateway.",
			config: func() *spec.Cluster {
				order := azureOrder()
				azure := order.ProviderSpecificConfig.AzureConfig
				azure.AzureZones, azure.Zones, azure.IdleConnectionTimeoutMinutes = nil, []string{"1", "2"}, nil

				return order
			},
			options: nothing,
		},
		"azure-without-zones": {
			reason: "Machines without a zone have no NAT gateway: Azure does not support it.",
			config: func() *spec.Cluster {
				order := azureOrder()
				order.ProviderSpecificConfig.AzureConfig.AzureZones = nil

				return order
			},
			options: nothing,
		},
		"gcp": {
			reason: "Gardener sets its defaults for omitted fields; empty texts are treated as omitted.",
			config: gcpOrder, options: nothing,
		},
		"gcp-assured": {
			reason: "A reserved region needs a toleration.",
			config: func() *spec.Cluster {
				order := gcpOrder()
				order.Region, order.ProviderSpecificConfig.GCPConfig.Zones = "me-central2", []string{"me-central2-b"}

				return order
			},
			options: nothing,
		},
	}

	cases["aws-identity-provider"] = goldenCase{
		reason: "The API server trusts the identity provider of the order, by a ConfigMap that is applied before the Shoot.",
		config: func() *spec.Cluster {
			order := awsOrder()
			order.OIDCConfig = identityProvider()

			return order
		},
		options: everything,
	}
	cases["gcp-domain"] = goldenCase{
		reason: "A custom domain uses the DNS provider whose Secret the order names.",
		config: func() *spec.Cluster {
			order := gcpOrder()
			order.KubernetesVersion = "1.36.3"
			order.DNSConfig = &spec.DNS{Domain: "c.example.com", Providers: []*spec.DNSProvider{
				{DomainsInclude: []string{"c.example.com"}, Primary: true, SecretName: "dns", Type: "aws-route53"},
				{DomainsInclude: []string{}, SecretName: "other", Type: "google-clouddns"},
			}}

			return order
		},
		options: nothing,
	}
	cases["aws-worker-pools"] = goldenCase{
		reason: "Additional pools have their own machines and zones, and by default the image of the first pool.",
		config: func() *spec.Cluster {
			order := awsOrder()
			order.AdditionalWorkers = []*spec.WorkerPool{
				{
					Name: "gpu", MachineType: "m6i.4xlarge", DiskType: new("io1"), VolumeSizeGB: new(200), Zones: []string{"eu-central-1b"},
					AutoScalerMax: 5, MaxUnavailable: 1,
				},
				{
					Name: "batch", MachineType: "m6i.large", MachineImage: new("gardenlinux"), MachineImageVersion: new("1877.2.0"),
					AutoScalerMin: 2, AutoScalerMax: 8, MaxSurge: 2,
				},
			}

			return order
		},
		options: everything,
	}
	cases["openstack"] = goldenCase{
		reason: "OpenStack has a floating pool, a load balancer provider, and the exposure class of the installation.",
		config: openStackOrder, options: nothing,
	}
	cases["openstack-named"] = goldenCase{
		reason: "The order overrides the defaults for OpenStack.",
		config: func() *spec.Cluster {
			order := openStackOrder()
			openStack := order.ProviderSpecificConfig.OpenStackConfig
			openStack.CloudProfileName, openStack.FloatingPoolName = new("converged-cloud-cp"), new("FloatingIP-external-cp-kyma")
			order.ExposureClassName = new("internet")

			return order
		},
		options: nothing,
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			assertShoot(t, tc, name+".yaml")
		})
	}
}

// TestBuildForEachVersion builds an order that sets every field, for each provider and each supported Kubernetes version.
func TestBuildForEachVersion(t *testing.T) {
	t.Parallel()

	orders := map[string]func() *spec.Cluster{"aws": awsOrder, "azure": azureOrder, "gcp": gcpOrder, "openstack": openStackOrder}

	for provider, order := range orders {
		for minor, version := range map[string]string{
			"1.32": "1.32.13", "1.33": "1.33.11", "1.34": "1.34.7", "1.35": "1.35.4", "1.36": "1.36.3",
		} {
			t.Run(provider+"-"+minor, func(t *testing.T) {
				t.Parallel()

				assertShoot(t, goldenCase{
					reason: "The same fields are valid in all supported versions.",
					config: func() *spec.Cluster {
						config := order()
						config.KubernetesVersion, config.OIDCConfig, config.Purpose = version, identityProvider(), new("production")

						return config
					},
					options: shoot.Options{
						Namespace: "garden-kyma", AuditPolicyConfigMap: "audit-policy", AuditLogTenant: "audit-account", RequireIMDSv2: true,
						AutoUpdateMachineImage: true, Extensions: shoot.DefaultExtensions(),
						AuditLogs: shoot.AuditLogs{provider: {order().Region: {
							TenantID: "logs-1", ServiceURL: "https://logs.example.com", SecretName: "audit-credentials",
						}}},
						MaintenanceWindows: map[string]gardencorev1beta1.MaintenanceTimeWindow{
							order().Region: {Begin: "220000+0000", End: "230000+0000"},
						},
					},
				}, provider+"-"+minor+".yaml")
			})
		}
	}
}

// assertShoot compares the Shoot of an order with a golden file. The tests in test/e2e apply the golden files to the local
// garden.
func assertShoot(t *testing.T, tc goldenCase, name string) {
	t.Helper()

	built, err := shoot.Build(runtimeOf(tc.config()), tc.options)
	if err != nil {
		t.Fatalf("%s\nBuild(): %v", tc.reason, err)
	}

	manifest, err := shoot.Manifest(built.Shoot)
	if err != nil {
		t.Fatalf("%s\nManifest(): %v", tc.reason, err)
	}

	text, err := yaml.Marshal(manifest.Object)
	if err != nil {
		t.Fatal(err)
	}

	var read gardencorev1beta1.Shoot
	if err := yaml.UnmarshalStrict(text, &read); err != nil {
		t.Errorf("%s\nGardener's type lacks a field: %v", tc.reason, err)
	}

	if built.Authentication != nil {
		configMap, err := yaml.Marshal(built.Authentication)
		if err != nil {
			t.Fatal(err)
		}

		text = slices.Concat(configMap, []byte("---\n"), text)
	}

	assertGolden(t, tc.reason, name, text)
}

func TestBuildRefuses(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		change func(config *spec.Cluster)
		want   string
	}{
		"OtherPart": {
			reason: "An order that was not validated must not cause a panic.",
			change: func(config *spec.Cluster) { config.Provider = "aws" },
			want:   "providerSpecificConfig has no configuration for provider aws",
		},
		"NoPart": {
			reason: "An order that was not validated must not cause a panic.",
			change: func(config *spec.Cluster) { config.ProviderSpecificConfig = nil },
			want:   "providerSpecificConfig is missing",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			config := gcpOrder()
			tc.change(config)

			_, err := shoot.Build(runtimeOf(config), shoot.Options{})
			if !failure.Is(err, failure.Invalid) {
				t.Fatalf("%s\nwant an error of kind %s, got %v", tc.reason, failure.Invalid, err)
			}

			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("%s\nBuild(): -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func runtimeOf(config *spec.Cluster) shoot.Runtime {
	return shoot.Runtime{ID: "rt-1", OperationID: "op-1", Tenant: "acme", SubAccount: "acme-dev", Config: config}
}

func awsOrder() *spec.Cluster {
	return &spec.Cluster{
		Name: "c-1234567", KubernetesVersion: "1.34.7", Provider: "aws", TargetSecret: "aws", Region: "eu-central-1",
		MachineType: "m6i.xlarge", MachineImage: new("gardenlinux"), MachineImageVersion: new("1592.14.0"),
		DiskType: new("gp3"), VolumeSizeGB: new(80),
		WorkerCIDR: "10.250.0.0/16", PodsCIDR: new("10.96.0.0/13"), ServicesCIDR: new("10.104.0.0/13"),
		AutoScalerMin: 3, AutoScalerMax: 20, MaxSurge: 1, MaxUnavailable: 0, Purpose: new("production"),
		LicenceType:                  new("TestDevelopmentAndDemo"),
		ControlPlaneFailureTolerance: new("zone"), EUAccess: new(true),
		ProviderSpecificConfig: &spec.Provider{AWSConfig: &spec.AWS{
			VpcCIDR: "10.250.0.0/16",
			AWSZones: []*spec.AWSZone{
				{Name: "eu-central-1a", WorkerCIDR: "10.250.0.0/19", PublicCIDR: "10.250.32.0/20", InternalCIDR: "10.250.48.0/20"},
				{Name: "eu-central-1b", WorkerCIDR: "10.250.64.0/19", PublicCIDR: "10.250.96.0/20", InternalCIDR: "10.250.112.0/20"},
			},
		}},
	}
}

func azureOrder() *spec.Cluster {
	return &spec.Cluster{
		Name: "c-1234567", KubernetesVersion: "1.33", Provider: "azure", TargetSecret: "azure", Region: "westeurope",
		MachineType: "Standard_D4s_v5", WorkerCIDR: "10.250.0.0/16",
		AutoScalerMin: 3, AutoScalerMax: 10, MaxSurge: 3, MaxUnavailable: 1, Purpose: new("evaluation"),
		ProviderSpecificConfig: &spec.Provider{AzureConfig: &spec.Azure{
			VnetCIDR: "10.250.0.0/16", EnableNATGateway: new(true), IdleConnectionTimeoutMinutes: new(10),
			AzureZones: []*spec.AzureZone{{Name: 2, CIDR: "10.250.0.0/19"}, {Name: 3, CIDR: "10.250.32.0/19"}},
		}},
	}
}

func gcpOrder() *spec.Cluster {
	return &spec.Cluster{
		Name: "c-1234567", KubernetesVersion: "1.34.7", Provider: "gcp", TargetSecret: "gcp", Region: "europe-west3",
		MachineType: "n2-standard-4", WorkerCIDR: "10.250.0.0/16", AutoScalerMin: 1, AutoScalerMax: 3, MaxSurge: 1,
		Purpose: new(""), Seed: new(""), MachineImage: new(""), PodsCIDR: new(""), LicenceType: new(""),
		ControlPlaneFailureTolerance: new(""), ExposureClassName: new(""), EUAccess: new(false),
		ProviderSpecificConfig: &spec.Provider{
			GCPConfig: &spec.GCP{Zones: []string{"europe-west3-a", "europe-west3-b"}},
		},
	}
}

func openStackOrder() *spec.Cluster {
	return &spec.Cluster{
		Name: "c-1234567", KubernetesVersion: "1.35.4", Provider: "openstack", TargetSecret: "openstack", Region: "eu-de-1",
		MachineType: "g_c4_m16", WorkerCIDR: "10.250.0.0/16", AutoScalerMin: 3, AutoScalerMax: 8, MaxSurge: 1,
		ProviderSpecificConfig: &spec.Provider{
			OpenStackConfig: &spec.OpenStack{Zones: []string{"eu-de-1a", "eu-de-1b"}, LoadBalancerProvider: "f5"},
		},
	}
}
