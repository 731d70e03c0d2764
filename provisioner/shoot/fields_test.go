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

// TestFieldsOfAShoot verifies each field that Kyma Provisioner sets from an order or a variable. For fields that Gardener has
// since removed, it verifies their replacements.
func TestFieldsOfAShoot(t *testing.T) {
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
		{reason: "The account is a label.", at: "metadata/labels/account", want: "acme"},
		{reason: "The subaccount is a label.", at: "metadata/labels/subaccount", want: "acme-dev"},
		{reason: "The runtime's ID is a label.", at: "metadata/labels/provisioner.environment-broker.io~runtime-id", want: "rt-1"},
		{reason: "Tools read the runtime's ID.", at: "metadata/annotations/kcp.provisioner.kyma-project.io~runtime-id", want: "rt-1"},
		{reason: "Tools read the operation's ID.", at: "metadata/annotations/kcp.provisioner.kyma-project.io~operation-id", want: "op-1"},
		{reason: "Older tools read the runtime's ID here.", at: "metadata/annotations/compass.provisioner.kyma-project.io~runtime-id", want: "rt-1"},
		{reason: "Older tools read the operation's ID here.", at: "metadata/annotations/compass.provisioner.kyma-project.io~operation-id", want: "op-1"},
		{
			reason: "Billing reads the licence type.", at: "metadata/annotations/kcp.provisioner.kyma-project.io~licence-type",
			change: func(o *order) { o.LicenceType = new("TestDevelopmentAndDemo") }, want: "TestDevelopmentAndDemo",
		},
		{
			reason: "Audit logs are stored under this account.", at: "metadata/annotations/custom.shoot.sapcloud.io~subaccountId",
			options: shoot.Options{AuditLogTenant: "audit"}, want: "audit",
		},
		{reason: "targetSecret names a CredentialsBinding.", at: "spec/credentialsBindingName", want: "aws"},
		{reason: "Gardener rejects the earlier field.", at: "spec/secretBindingName", want: unset},
		{reason: "The cloud profile is named after the provider.", at: "spec/cloudProfile/name", want: "aws"},
		{reason: "The reference names the kind of the profile.", at: "spec/cloudProfile/kind", want: "CloudProfile"},
		{reason: "Gardener rejects the earlier field.", at: "spec/cloudProfileName", want: unset},
		{reason: "Gardener chooses the Seed.", at: "spec/seedName", want: unset},
		{reason: "The order may name a Seed.", change: func(o *order) { o.Seed = new("aws-eu1") }, at: "spec/seedName", want: "aws-eu1"},
		{reason: "A Shoot has a region.", at: "spec/region", want: "eu-central-1"},
		{reason: "A Shoot has a purpose.", at: "spec/purpose", want: "production"},
		{reason: "Gardener chooses the purpose.", change: func(o *order) { o.Purpose = nil }, at: "spec/purpose", want: unset},
		{reason: "Gardener chooses the exposure class.", at: "spec/exposureClassName", want: unset},
		{reason: "The order may name an exposure class.", change: func(o *order) { o.ExposureClassName = new("e") }, at: "spec/exposureClassName", want: "e"},
		{reason: "Kubernetes has a version.", at: "spec/kubernetes/version", want: "1.34.7"},
		{
			reason: "The options name the audit policy.", at: "spec/kubernetes/kubeAPIServer/auditConfig/auditPolicy/configMapRef/name",
			options: shoot.Options{AuditPolicyConfigMap: "policy"}, want: "policy",
		},
		{reason: "By default there is no audit policy.", at: "spec/kubernetes/kubeAPIServer", want: unset},
		{reason: "Gardener has removed the earlier field.", change: func(o *order) { o.OIDCConfig = identityProvider() }, at: "spec/kubernetes/kubeAPIServer/oidcConfig", want: unset},
		{reason: "All Shoots have the same network plugin.", at: "spec/networking/type", want: "calico"},
		{reason: "The nodes use the network of the provider's configuration.", at: "spec/networking/nodes", want: "10.250.0.0/16"},
		{reason: "Pods have a network.", at: "spec/networking/pods", want: "10.96.0.0/13"},
		{reason: "Services have a network.", at: "spec/networking/services", want: "10.104.0.0/13"},
		{reason: "Gardener chooses an omitted range.", change: func(o *order) { o.PodsCIDR = nil }, at: "spec/networking/pods", want: unset},
		{reason: "Automatic updates are off by default.", at: "spec/maintenance/autoUpdate/kubernetesVersion", want: false},
		{reason: "The options may enable automatic updates.", options: shoot.Options{AutoUpdateKubernetes: true}, at: "spec/maintenance/autoUpdate/kubernetesVersion", want: true},
		{
			reason: "The order overrides the options.", options: shoot.Options{AutoUpdateKubernetes: true}, at: "spec/maintenance/autoUpdate/kubernetesVersion",
			change: func(o *order) { o.EnableKubernetesVersionAutoUpdate = new(false) }, want: false,
		},
		{reason: "The options may enable automatic updates of images.", options: shoot.Options{AutoUpdateMachineImage: true}, at: "spec/maintenance/autoUpdate/machineImageVersion", want: true},
		{
			reason: "The order overrides the options.", options: shoot.Options{AutoUpdateMachineImage: true}, at: "spec/maintenance/autoUpdate/machineImageVersion",
			change: func(o *order) { o.EnableMachineImageVersionAutoUpdate = new(false) }, want: false,
		},
		{reason: "Production has a maintenance window.", options: shoot.Options{MaintenanceWindows: window}, at: "spec/maintenance/timeWindow/begin", want: "030000+0100"},
		{
			reason: "Gardener chooses the window of other purposes.", options: shoot.Options{MaintenanceWindows: window}, at: "spec/maintenance/timeWindow",
			change: func(o *order) { o.Purpose = new("development") }, want: unset,
		},
		{reason: "Gardener chooses the domain.", at: "spec/dns", want: unset},
		{
			reason: "The order may name a domain.", at: "spec/dns/domain",
			change: func(o *order) { o.DNSConfig = domainOf("aws-route53") }, want: "c.example.com",
		},
		{
			reason: "The domain refers to its provider's credentials.", at: "spec/dns/providers/0/credentialsRef/name",
			change: func(o *order) { o.DNSConfig = domainOf("aws-route53") }, want: "dns",
		},
		{
			reason: "Gardener rejects credentials of a domain that it does not manage.", at: "spec/dns/providers/0/credentialsRef",
			change: func(o *order) { o.DNSConfig = domainOf("unmanaged") }, want: unset,
		},
		{
			reason: "Gardener rejects the earlier field.", at: "spec/dns/providers/0/secretName",
			change: func(o *order) { o.DNSConfig = domainOf("aws-route53") }, want: unset,
		},
		{
			reason: "The DNS extension replicates names.", options: shoot.Options{Extensions: []string{shoot.ExtensionDNS}},
			at: "spec/extensions/0/providerConfig/dnsProviderReplication/enabled", want: true,
		},
		{
			reason: "Clusters may have their own issuers.", options: shoot.Options{Extensions: []string{shoot.ExtensionCertificates}},
			at: "spec/extensions/0/providerConfig/shootIssuers/enabled", want: true,
		},
		{
			reason: "The filter is off by default.", options: shoot.Options{Extensions: []string{shoot.ExtensionNetworkingFilter}},
			at: "spec/extensions/0/disabled", want: true,
		},
		{
			reason: "The order may enable the filter.", options: shoot.Options{Extensions: []string{shoot.ExtensionNetworkingFilter}},
			change: func(o *order) { o.ShootNetworkingFilterDisabled = new(false) }, at: "spec/extensions/0/disabled", want: false,
		},
		{
			reason: "The OIDC extension is enabled.", options: shoot.Options{Extensions: []string{shoot.ExtensionOIDC}},
			at: "spec/extensions/0/disabled", want: false,
		},
		{reason: "Audit logs go to the configured service.", options: shoot.Options{AuditLogs: logs}, at: "spec/extensions/0/providerConfig/tenantID", want: "t"},
		{reason: "The Shoot refers to the credentials of the service.", options: shoot.Options{AuditLogs: logs}, at: "spec/resources/0/resourceRef/name", want: "s"},
		{
			reason: "A region without a target has no extension.", options: shoot.Options{AuditLogs: logs}, at: "spec/extensions",
			change: func(o *order) { o.Region = "eu-west-1" }, want: unset,
		},
		{reason: "The control plane tolerates the loss of a zone.", at: "spec/controlPlane/highAvailability/failureTolerance/type", want: "zone"},
		{reason: "Failure tolerance is optional.", change: func(o *order) { o.ControlPlaneFailureTolerance = nil }, at: "spec/controlPlane", want: unset},
		{reason: "EU access is a named restriction.", at: "spec/accessRestrictions/0/name", want: "eu-access-only"},
		{
			reason: "EU access also restricts nodes.", at: "spec/accessRestrictions/0/options/support.gardener.cloud~eu-access-for-cluster-nodes", want: "true",
		},
		{reason: "EU access is optional.", change: func(o *order) { o.EUAccess = nil }, at: "spec/accessRestrictions", want: unset},
		{reason: "The earlier annotation is unset.", at: "metadata/annotations/support.gardener.cloud~eu-access-for-cluster-nodes", want: unset},
		{reason: "A reserved region is tolerated.", change: func(o *order) { o.Region = "me-central2" }, at: "spec/tolerations/0/key", want: "ksa-assured-workload"},
		{reason: "Tools rely on the name of the first pool.", at: worker + "name", want: "cpu-worker-0"},
		{reason: "The autoscaler has a lower bound.", at: worker + "minimum", want: int64(3)},
		{reason: "The autoscaler has an upper bound.", at: worker + "maximum", want: int64(20)},
		{reason: "Updates may add machines.", at: worker + "maxSurge", want: int64(1)},
		{reason: "Updates may remove machines.", at: worker + "maxUnavailable", want: int64(0)},
		{reason: "Machines have a type.", at: worker + "machine/type", want: "m6i.xlarge"},
		{reason: "Machines have an image.", at: worker + "machine/image/name", want: "gardenlinux"},
		{reason: "An image has a version.", at: worker + "machine/image/version", want: "1592.14.0"},
		{reason: "Gardener chooses the image.", change: func(o *order) { o.MachineImage = nil }, at: worker + "machine/image", want: unset},
		{reason: "Machines have a disk.", at: worker + "volume/size", want: "80Gi"},
		{reason: "A disk has a type.", at: worker + "volume/type", want: "gp3"},
		{reason: "A disk without a type is omitted.", change: func(o *order) { o.DiskType = nil }, at: worker + "volume", want: unset},
		{reason: "The first pool uses all zones.", at: worker + "zones/1", want: "eu-central-1b"},
		{reason: "SSH access is off.", at: "spec/provider/workersSettings/sshAccess/enabled", want: false},
		{reason: "The metadata service requires no tokens by default.", at: worker + "providerConfig", want: unset},
		{reason: "The options may require tokens.", options: shoot.Options{RequireIMDSv2: true}, at: worker + "providerConfig/instanceMetadataOptions/httpTokens", want: "required"},
		{
			reason: "The order overrides the options.", options: shoot.Options{RequireIMDSv2: true}, at: worker + "providerConfig",
			change: func(o *order) { o.ProviderSpecificConfig.AWSConfig.EnableIMDSv2 = new(false) }, want: unset,
		},
		{reason: "Gardener has removed addons.", at: "spec/addons", want: unset},
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

// TestOriginalOwner verifies that the ID of an owner becomes an annotation if it is not a valid label.
func TestOriginalOwner(t *testing.T) {
	t.Parallel()

	runtime := runtimeOf(awsOrder())

	objects, err := shoot.Build(runtime, shoot.Options{})
	if err != nil {
		t.Fatal(err)
	}

	plain := len(objects.Shoot.Annotations)

	runtime.OriginalTenant, runtime.OriginalSubAccount = "-", "a b"
	if objects, err = shoot.Build(runtime, shoot.Options{}); err != nil {
		t.Fatal(err)
	}

	if got := objects.Shoot.Annotations; len(got) != plain+2 || got[shoot.AnnotationAccount] != "-" || got[shoot.AnnotationSubAccount] != "a b" {
		t.Errorf("got the annotations %v, want both IDs among them and no empty ones before", got)
	}
}

// TestPageHasEveryField verifies that the table of docs/operator/shoots.md contains every field of the schema.
func TestPageHasEveryField(t *testing.T) {
	t.Parallel()

	page, err := os.ReadFile("../../docs/operator/shoots.md")
	if err != nil {
		t.Fatal(err)
	}

	for field := range reflect.TypeFor[spec.Cluster]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page lacks %s", name)
		}
	}
}

// at returns the value at a path, or nil. The path consists of keys and indexes, separated by slashes. In a key, ~ stands for
// a slash.
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
