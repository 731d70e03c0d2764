package shoot_test

import (
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// TestEachFieldHasItsPlace checks what Kyma Provisioner made of an order and of its variables, and what takes
// the place of fields that Gardener has retired since.
func TestEachFieldHasItsPlace(t *testing.T) {
	t.Parallel()

	type order = spec.Cluster

	const worker = "spec/provider/workers/0/"

	unset := any(nil)
	window := map[string]gardencorev1beta1.MaintenanceTimeWindow{"eu-central-1": {Begin: "030000+0100", End: "040000+0100"}}
	logs := shoot.AuditLogs{"aws": {"eu-central-1": {TenantID: "t", ServiceURL: "https://logs.example.com", SecretName: "s"}}}

	cases := []struct {
		reason  string
		change  func(order *order)
		options shoot.Options
		at      string
		want    any
	}{
		{reason: "A Shoot tells whose it is.", at: "metadata/labels/account", want: "acme"},
		{reason: "A Shoot tells whose it is.", at: "metadata/labels/subaccount", want: "acme-dev"},
		{reason: "A Shoot is found by its runtime.", at: "metadata/labels/provisioner.environment-broker.io~runtime-id", want: "rt-1"},
		{reason: "Tools know its runtime.", at: "metadata/annotations/kcp.provisioner.kyma-project.io~runtime-id", want: "rt-1"},
		{reason: "Tools know its operation.", at: "metadata/annotations/kcp.provisioner.kyma-project.io~operation-id", want: "op-1"},
		{reason: "Older tools know it too.", at: "metadata/annotations/compass.provisioner.kyma-project.io~runtime-id", want: "rt-1"},
		{reason: "Older tools know it too.", at: "metadata/annotations/compass.provisioner.kyma-project.io~operation-id", want: "op-1"},
		{
			reason: "The licence is for those who charge.", at: "metadata/annotations/kcp.provisioner.kyma-project.io~licence-type",
			change: func(o *order) { o.LicenceType = new("TestDevelopmentAndDemo") }, want: "TestDevelopmentAndDemo",
		},
		{
			reason: "The landscape's audit logging ascribes Shoots by it.", at: "metadata/annotations/custom.shoot.sapcloud.io~subaccountId",
			options: shoot.Options{AuditLogTenant: "audit"}, want: "audit",
		},
		{reason: "targetSecret names a CredentialsBinding.", at: "spec/credentialsBindingName", want: "aws"},
		{reason: "Its former field is refused.", at: "spec/secretBindingName", want: unset},
		{reason: "The cloud profile is that of the provider.", at: "spec/cloudProfile/name", want: "aws"},
		{reason: "A profile is referred to by its kind.", at: "spec/cloudProfile/kind", want: "CloudProfile"},
		{reason: "Its former field is refused.", at: "spec/cloudProfileName", want: unset},
		{reason: "Gardener chooses the Seed.", at: "spec/seedName", want: unset},
		{reason: "Unless one is ordered.", change: func(o *order) { o.Seed = new("aws-eu1") }, at: "spec/seedName", want: "aws-eu1"},
		{reason: "A Shoot has a region.", at: "spec/region", want: "eu-central-1"},
		{reason: "A Shoot has a purpose.", at: "spec/purpose", want: "production"},
		{reason: "Gardener chooses the purpose.", change: func(o *order) { o.Purpose = nil }, at: "spec/purpose", want: unset},
		{reason: "Gardener chooses how it is reached.", at: "spec/exposureClassName", want: unset},
		{reason: "Unless that is ordered.", change: func(o *order) { o.ExposureClassName = new("e") }, at: "spec/exposureClassName", want: "e"},
		{reason: "Kubernetes has a version.", at: "spec/kubernetes/version", want: "1.34.7"},
		{
			reason: "The audit policy is the landscape's.", at: "spec/kubernetes/kubeAPIServer/auditConfig/auditPolicy/configMapRef/name",
			options: shoot.Options{AuditPolicyConfigMap: "policy"}, want: "policy",
		},
		{reason: "There is no policy by default.", at: "spec/kubernetes/kubeAPIServer", want: unset},
		{reason: "Its former field is gone.", change: func(o *order) { o.OIDCConfig = identityProvider() }, at: "spec/kubernetes/kubeAPIServer/oidcConfig", want: unset},
		{reason: "The network plugin is the same for all.", at: "spec/networking/type", want: "calico"},
		{reason: "The nodes' network is the provider's.", at: "spec/networking/nodes", want: "10.250.0.0/16"},
		{reason: "Pods have a network.", at: "spec/networking/pods", want: "10.96.0.0/13"},
		{reason: "Services have a network.", at: "spec/networking/services", want: "10.104.0.0/13"},
		{reason: "Gardener chooses what is left out.", change: func(o *order) { o.PodsCIDR = nil }, at: "spec/networking/pods", want: unset},
		{reason: "Updates are ordered by hand.", at: "spec/maintenance/autoUpdate/kubernetesVersion", want: false},
		{reason: "Unless the landscape says so.", options: shoot.Options{AutoUpdateKubernetes: true}, at: "spec/maintenance/autoUpdate/kubernetesVersion", want: true},
		{
			reason: "The order has the last word.", options: shoot.Options{AutoUpdateKubernetes: true}, at: "spec/maintenance/autoUpdate/kubernetesVersion",
			change: func(o *order) { o.EnableKubernetesVersionAutoUpdate = new(false) }, want: false,
		},
		{reason: "As with Kubernetes.", options: shoot.Options{AutoUpdateMachineImage: true}, at: "spec/maintenance/autoUpdate/machineImageVersion", want: true},
		{
			reason: "As with Kubernetes.", options: shoot.Options{AutoUpdateMachineImage: true}, at: "spec/maintenance/autoUpdate/machineImageVersion",
			change: func(o *order) { o.EnableMachineImageVersionAutoUpdate = new(false) }, want: false,
		},
		{reason: "Production has its window.", options: shoot.Options{MaintenanceWindows: window}, at: "spec/maintenance/timeWindow/begin", want: "030000+0100"},
		{
			reason: "Others are touched when Gardener likes.", options: shoot.Options{MaintenanceWindows: window}, at: "spec/maintenance/timeWindow",
			change: func(o *order) { o.Purpose = new("development") }, want: unset,
		},
		{reason: "Gardener chooses the domain.", at: "spec/dns", want: unset},
		{
			reason: "A domain of one's own.", at: "spec/dns/domain",
			change: func(o *order) { o.DNSConfig = domainOf("aws-route53") }, want: "c.example.com",
		},
		{
			reason: "Its provider's credentials are referred to.", at: "spec/dns/providers/0/credentialsRef/name",
			change: func(o *order) { o.DNSConfig = domainOf("aws-route53") }, want: "dns",
		},
		{
			reason: "Their former field is refused.", at: "spec/dns/providers/0/secretName",
			change: func(o *order) { o.DNSConfig = domainOf("aws-route53") }, want: unset,
		},
		{
			reason: "Names are replicated.", options: shoot.Options{Extensions: []string{shoot.ExtensionDNS}},
			at: "spec/extensions/0/providerConfig/dnsProviderReplication/enabled", want: true,
		},
		{
			reason: "Clusters may have issuers of their own.", options: shoot.Options{Extensions: []string{shoot.ExtensionCertificates}},
			at: "spec/extensions/0/providerConfig/shootIssuers/enabled", want: true,
		},
		{
			reason: "The filter is off by default.", options: shoot.Options{Extensions: []string{shoot.ExtensionNetworkingFilter}},
			at: "spec/extensions/0/disabled", want: true,
		},
		{
			reason: "The filter is on where that is ordered.", options: shoot.Options{Extensions: []string{shoot.ExtensionNetworkingFilter}},
			change: func(o *order) { o.ShootNetworkingFilterDisabled = new(false) }, at: "spec/extensions/0/disabled", want: false,
		},
		{
			reason: "The extension works.", options: shoot.Options{Extensions: []string{shoot.ExtensionOIDC}},
			at: "spec/extensions/0/disabled", want: false,
		},
		{reason: "Audit logs go to the landscape's service.", options: shoot.Options{AuditLogs: logs}, at: "spec/extensions/0/providerConfig/tenantID", want: "t"},
		{reason: "Its credentials are handed over.", options: shoot.Options{AuditLogs: logs}, at: "spec/resources/0/resourceRef/name", want: "s"},
		{
			reason: "A region without a service has no extension.", options: shoot.Options{AuditLogs: logs}, at: "spec/extensions",
			change: func(o *order) { o.Region = "eu-west-1" }, want: unset,
		},
		{reason: "The control plane survives a zone.", at: "spec/controlPlane/highAvailability/failureTolerance/type", want: "zone"},
		{reason: "Or nothing.", change: func(o *order) { o.ControlPlaneFailureTolerance = nil }, at: "spec/controlPlane", want: unset},
		{reason: "Access is restricted by name.", at: "spec/accessRestrictions/0/name", want: "eu-access-only"},
		{
			reason: "Nodes too.", at: "spec/accessRestrictions/0/options/support.gardener.cloud~eu-access-for-cluster-nodes", want: "true",
		},
		{reason: "Only where that is ordered.", change: func(o *order) { o.EUAccess = nil }, at: "spec/accessRestrictions", want: unset},
		{reason: "Its former annotation is nothing.", at: "metadata/annotations/support.gardener.cloud~eu-access-for-cluster-nodes", want: unset},
		{reason: "A reserved region is tolerated.", change: func(o *order) { o.Region = "me-central2" }, at: "spec/tolerations/0/key", want: "ksa-assured-workload"},
		{reason: "The first pool has the name that tools know.", at: worker + "name", want: "cpu-worker-0"},
		{reason: "The autoscaler has a lower bound.", at: worker + "minimum", want: int64(3)},
		{reason: "The autoscaler has an upper bound.", at: worker + "maximum", want: int64(20)},
		{reason: "Updates add machines.", at: worker + "maxSurge", want: int64(1)},
		{reason: "Updates take machines away.", at: worker + "maxUnavailable", want: int64(0)},
		{reason: "Machines have a type.", at: worker + "machine/type", want: "m6i.xlarge"},
		{reason: "Machines have an image.", at: worker + "machine/image/name", want: "gardenlinux"},
		{reason: "An image has a version.", at: worker + "machine/image/version", want: "1592.14.0"},
		{reason: "Gardener chooses the image.", change: func(o *order) { o.MachineImage = nil }, at: worker + "machine/image", want: unset},
		{reason: "Machines have a disk.", at: worker + "volume/size", want: "80Gi"},
		{reason: "A disk has a type.", at: worker + "volume/type", want: "gp3"},
		{reason: "A disk without a type is none.", change: func(o *order) { o.DiskType = nil }, at: worker + "volume", want: unset},
		{reason: "Machines stand in all zones.", at: worker + "zones/1", want: "eu-central-1b"},
		{reason: "Nobody logs in.", at: "spec/provider/workersSettings/sshAccess/enabled", want: false},
		{reason: "Machines tell of themselves to everybody.", at: worker + "providerConfig", want: unset},
		{reason: "Or demand tokens.", options: shoot.Options{RequireIMDSv2: true}, at: worker + "providerConfig/instanceMetadataOptions/httpTokens", want: "required"},
		{
			reason: "The order has the last word.", options: shoot.Options{RequireIMDSv2: true}, at: worker + "providerConfig",
			change: func(o *order) { o.ProviderSpecificConfig.AWSConfig.EnableIMDSv2 = new(false) }, want: unset,
		},
		{reason: "Addons are gone.", at: "spec/addons", want: unset},
	}

	for _, tc := range cases {
		t.Run(tc.at, func(t *testing.T) {
			t.Parallel()

			config := awsOrder()
			if tc.change != nil {
				tc.change(config)
			}

			built, err := shoot.Build(runtimeOf(config), tc.options)
			if err != nil {
				t.Fatal(err)
			}

			manifest, err := shoot.Manifest(built.Shoot)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(tc.want, at(manifest.Object, tc.at)); diff != "" {
				t.Errorf("%s\n%s, -want +got:\n%s", tc.reason, tc.at, diff)
			}
		})
	}
}

// TestPageHasEveryField: every field of the schema is in the table of docs/operator/shoots.md.
func TestPageHasEveryField(t *testing.T) {
	t.Parallel()

	page, err := os.ReadFile("../../docs/operator/shoots.md")
	if err != nil {
		t.Fatal(err)
	}

	for field := range reflect.TypeFor[spec.Cluster]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page does not tell of %s", name)
		}
	}
}

// at returns the value at a path, whose parts are keys or numbers; a slash in a key is written as ~. It is nil where there is none.
func at(value any, path string) any {
	for part := range strings.SplitSeq(path, "/") {
		switch present := value.(type) {
		case map[string]any:
			value = present[strings.ReplaceAll(part, "~", "/")]
		case []any:
			number, err := strconv.Atoi(part)
			if err != nil || number >= len(present) {
				return nil
			}

			value = present[number]
		default:
			return nil
		}
	}

	return value
}

func domainOf(provider string) *spec.DNS {
	return &spec.DNS{Domain: "c.example.com", Providers: []*spec.DNSProvider{
		{DomainsInclude: []string{"c.example.com"}, Primary: true, SecretName: "dns", Type: provider},
	}}
}
