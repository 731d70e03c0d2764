package shoot_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

func TestKeep(t *testing.T) {
	t.Parallel()

	type versions struct{ Kubernetes, Image string }

	cases := map[string]struct {
		reason                 string
		ordered, present, want versions
	}{
		"Newer": {
			reason:  "An upgrade may order a newer version.",
			ordered: versions{"1.35.4", "2.0.0"}, present: versions{"1.34.7", "1.0.0"}, want: versions{"1.35.4", "2.0.0"},
		},
		"RaisedByGardener": {
			reason:  "Gardener rejects a downgrade, so a version that it has raised is preserved.",
			ordered: versions{"1.34.5", "1.0.0"}, present: versions{"1.34.7", "1.2.0"}, want: versions{"1.34.7", "1.2.0"},
		},
		"OpenPatch": {
			reason:  "For a version without a patch, the patch that Gardener chose is preserved.",
			ordered: versions{"1.34", "1.0.0"}, present: versions{"1.34.5", "1.0.0"}, want: versions{"1.34.5", "1.0.0"},
		},
		"OpenPatchOfTheNext": {
			reason:  "The next minor version without a patch is newer.",
			ordered: versions{"1.35", "1.0.0"}, present: versions{"1.34.5", "1.0.0"}, want: versions{"1.35", "1.0.0"},
		},
		"OtherNumbering": {
			reason:  "If image versions cannot be compared, the order wins.",
			ordered: versions{"1.34.5", "latest"}, present: versions{"1.34.5", "2.0.0"}, want: versions{"1.34.5", "latest"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			build := func(v versions) *shoot.Objects {
				config := awsOrder()
				config.KubernetesVersion, config.MachineImageVersion = v.Kubernetes, &v.Image

				built, err := shoot.Build(runtimeOf(config), shoot.Options{})
				if err != nil {
					t.Fatal(err)
				}

				return built
			}

			objects := build(tc.ordered)
			objects.Keep(build(tc.present).Shoot)

			spec := objects.Shoot.Spec
			got := versions{spec.Kubernetes.Version, *spec.Provider.Workers[0].Machine.Image.Version}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKeepHibernation(t *testing.T) {
	t.Parallel()

	objects, err := shoot.Build(runtimeOf(gcpOrder()), shoot.Options{})
	if err != nil {
		t.Fatal(err)
	}

	asleep := &gardencorev1beta1.Shoot{}
	asleep.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
	objects.Keep(asleep)

	if diff := cmp.Diff(asleep.Spec.Hibernation, objects.Shoot.Spec.Hibernation); diff != "" {
		t.Errorf("a change must not wake a hibernated cluster, -want +got:\n%s", diff)
	}
}

// TestKeepForeignEntries verifies that entries of other owners are preserved in lists that an apply replaces as a whole.
func TestKeepForeignEntries(t *testing.T) {
	t.Parallel()

	config := func(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

	options := shoot.Options{
		Extensions: []string{shoot.ExtensionDNS, shoot.ExtensionNetworkingFilter, shoot.ExtensionOIDC},
		AuditLogs:  shoot.AuditLogs{"aws": {"eu-central-1": {TenantID: "new", ServiceURL: "https://logs.example.com", SecretName: "logs"}}},
	}

	built := func() *shoot.Objects {
		order := awsOrder()
		order.ShootNetworkingFilterDisabled, order.Seed = new(false), new("aws-eu1")

		objects, err := shoot.Build(runtimeOf(order), options)
		if err != nil {
			t.Fatal(err)
		}

		return objects
	}

	fresh := built().Shoot.Spec
	present := &gardencorev1beta1.Shoot{Spec: gardencorev1beta1.ShootSpec{
		SeedName: new("aws-eu2"),
		Provider: fresh.Provider,
		Extensions: []gardencorev1beta1.Extension{
			{Type: "backup", ProviderConfig: config(`{"by": "hand"}`)},
			{Type: shoot.ExtensionDNS, ProviderConfig: config(`{"own": "providers"}`)},
			{Type: shoot.ExtensionNetworkingFilter, Disabled: new(true), ProviderConfig: config(`{"own": "list"}`)},
			{Type: shoot.ExtensionAuditLog, ProviderConfig: config(`{"tenantID": "old"}`)},
		},
		Resources:          []gardencorev1beta1.NamedResourceReference{{Name: "auditlog-credentials"}, {Name: "theirs"}},
		AccessRestrictions: []gardencorev1beta1.AccessRestrictionWithOptions{{AccessRestriction: gardencorev1beta1.AccessRestriction{Name: "theirs"}}},
	}}

	objects := built()
	objects.Keep(present)
	got := objects.Shoot.Spec

	byType := func(extensions []gardencorev1beta1.Extension) map[string]gardencorev1beta1.Extension {
		all := map[string]gardencorev1beta1.Extension{}
		for _, extension := range extensions {
			all[extension.Type] = extension
		}

		return all
	}

	want := map[string]gardencorev1beta1.Extension{
		"backup":                        present.Spec.Extensions[0],
		shoot.ExtensionDNS:              present.Spec.Extensions[1],
		shoot.ExtensionNetworkingFilter: {Type: shoot.ExtensionNetworkingFilter, Disabled: new(false), ProviderConfig: config(`{"own": "list"}`)},
		shoot.ExtensionOIDC:             {Type: shoot.ExtensionOIDC, Disabled: new(false)},
		shoot.ExtensionAuditLog:         byType(fresh.Extensions)[shoot.ExtensionAuditLog],
	}
	if diff := cmp.Diff(want, byType(got.Extensions)); diff != "" {
		t.Errorf("extensions, -want +got:\n%s", diff)
	}

	if len(got.Resources) != 2 || got.Resources[0].ResourceRef.Name != "logs" || got.Resources[1].Name != "theirs" {
		t.Errorf("resources are %v", got.Resources)
	}

	if len(got.AccessRestrictions) != 2 || got.AccessRestrictions[1].Name != "theirs" {
		t.Errorf("access restrictions are %v", got.AccessRestrictions)
	}

	if *got.SeedName != "aws-eu2" {
		t.Errorf("the change moves the control plane back to Seed %s", *got.SeedName)
	}

	again := built()
	again.Keep(objects.Shoot)

	if diff := cmp.Diff(got, again.Shoot.Spec); diff != "" {
		t.Errorf("the second change must change nothing, -first +second:\n%s", diff)
	}
}

func TestKeepConfigurationsOfProviders(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason      string
		order       func() *spec.Cluster
		present     func(provider *gardencorev1beta1.Provider)
		part        func(provider *gardencorev1beta1.Provider) *runtime.RawExtension
		wantWithout string
	}{
		"AddedToZone": {
			reason: "An address of a zone that a person has set is preserved.",
			order:  awsOrder,
			present: func(provider *gardencorev1beta1.Provider) {
				provider.InfrastructureConfig.Raw = bytes.Replace(provider.InfrastructureConfig.Raw,
					[]byte(`"name":"eu-central-1b"`), []byte(`"name":"eu-central-1b","elasticIPAllocationID":"by-hand"`), 1)
			},
			part: func(provider *gardencorev1beta1.Provider) *runtime.RawExtension { return provider.InfrastructureConfig },
		},
		"AddedToControlPlane": {
			reason: "A setting that orders do not have is preserved.",
			order:  gcpOrder,
			present: func(provider *gardencorev1beta1.Provider) {
				provider.ControlPlaneConfig.Raw = bytes.Replace(provider.ControlPlaneConfig.Raw,
					[]byte(`"zone":`), []byte(`"storage":{"by-hand":true},"zone":`), 1)
			},
			part: func(provider *gardencorev1beta1.Provider) *runtime.RawExtension { return provider.ControlPlaneConfig },
		},
		"AddedToGateway": {
			reason: "The addresses of a gateway are preserved.",
			order:  azureOrder,
			present: func(provider *gardencorev1beta1.Provider) {
				provider.InfrastructureConfig.Raw = bytes.Replace(provider.InfrastructureConfig.Raw,
					[]byte(`"enabled":true`), []byte(`"enabled":true,"ipAddresses":"by-hand"`), 1)
			},
			part: func(provider *gardencorev1beta1.Provider) *runtime.RawExtension { return provider.InfrastructureConfig },
		},
		"GatewayNoMore": {
			reason: "A gateway that is no longer ordered is removed.",
			order: func() *spec.Cluster {
				order := azureOrder()
				order.ProviderSpecificConfig.AzureConfig.EnableNATGateway = new(false)

				return order
			},
			present: func(provider *gardencorev1beta1.Provider) {
				provider.InfrastructureConfig.Raw = bytes.Replace(provider.InfrastructureConfig.Raw,
					[]byte(`"name":2`), []byte(`"name":2,"other":"by-hand","natGateway":{"enabled":true}`), 1)
			},
			part:        func(provider *gardencorev1beta1.Provider) *runtime.RawExtension { return provider.InfrastructureConfig },
			wantWithout: "natGateway",
		},
		"AddedToWorker": {
			reason: "Machine settings of a pool that orders do not have are preserved.",
			order:  awsOrder,
			present: func(provider *gardencorev1beta1.Provider) {
				provider.Workers[0].ProviderConfig.Raw = bytes.Replace(provider.Workers[0].ProviderConfig.Raw,
					[]byte(`"kind":`), []byte(`"volume":{"iops":"by-hand"},"kind":`), 1)
			},
			part: func(provider *gardencorev1beta1.Provider) *runtime.RawExtension {
				return provider.Workers[0].ProviderConfig
			},
		},
		"NoConfiguration": {
			reason: "A configuration that cannot be decoded is replaced.",
			order:  awsOrder,
			present: func(provider *gardencorev1beta1.Provider) {
				provider.InfrastructureConfig.Raw = []byte(`by-hand`)
			},
			part:        func(provider *gardencorev1beta1.Provider) *runtime.RawExtension { return provider.InfrastructureConfig },
			wantWithout: "by-hand",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			build := func() *shoot.Objects {
				objects, err := shoot.Build(runtimeOf(tc.order()), shoot.Options{RequireIMDSv2: true})
				if err != nil {
					t.Fatal(err)
				}

				return objects
			}

			present, objects := build().Shoot, build()
			tc.present(&present.Spec.Provider)
			objects.Keep(present)

			got := string(tc.part(&objects.Shoot.Spec.Provider).Raw)
			if wantKept := tc.wantWithout != "by-hand"; strings.Contains(got, "by-hand") != wantKept {
				t.Errorf("%s\ngot %s", tc.reason, got)
			}

			if tc.wantWithout != "" && strings.Contains(got, tc.wantWithout) {
				t.Errorf("%s\ngot %s", tc.reason, got)
			}

			var ours, both map[string]any
			if err := json.Unmarshal(tc.part(&build().Shoot.Spec.Provider).Raw, &ours); err != nil {
				t.Fatal(err)
			}

			if err := json.Unmarshal([]byte(got), &both); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(ours["kind"], both["kind"]); diff != "" {
				t.Errorf("the kind differs: %s", diff)
			}
		})
	}
}

// TestKeepWithoutTokens orders that the metadata service of the machines no longer requires tokens. The other fields of the worker
// configuration belong to another owner and must stay, and the requirement must not, even if another manager owns the field too.
func TestKeepWithoutTokens(t *testing.T) {
	t.Parallel()

	const (
		head   = `"apiVersion":"aws.provider.extensions.gardener.cloud/v1alpha1","kind":"WorkerConfig"`
		tokens = `"instanceMetadataOptions":{"httpPutResponseHopLimit":2,"httpTokens":"required"}`
		volume = `"volume":{"iops":4000}`
	)

	for name, tc := range map[string]struct {
		required      *bool
		present, want string
		adopted       bool
	}{
		"Off":          {required: new(false), present: "{" + head + "," + tokens + "," + volume + "}", want: "{" + head + "," + volume + "}"},
		"OffAdopted":   {required: new(false), present: "{" + head + "," + tokens + "}", want: "{" + head + "}", adopted: true},
		"OffBefore":    {required: new(false), present: "{" + head + "," + volume + "}", want: "{" + head + "," + volume + "}"},
		"NothingToOff": {required: new(false)},
		"NotOrdered":   {present: "{" + head + "," + tokens + "," + volume + "}"},
		"On":           {required: new(true), present: "{" + head + "," + volume + "}", want: `{"apiVersion":"aws.provider.extensions.gardener.cloud/v1alpha1",` + tokens + `,"kind":"WorkerConfig",` + volume + "}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			build := func(required *bool) *shoot.Objects {
				config := awsOrder()
				if tc.adopted {
					aws := *config.ProviderSpecificConfig.AWSConfig
					aws.EnableIMDSv2 = new(true)
					config.Adopted = &spec.Adopted{WorkerPool: shoot.WorkerPool, ProviderSpecificConfig: &spec.Provider{AWSConfig: &aws}}
				}

				config.ProviderSpecificConfig.AWSConfig.EnableIMDSv2 = required

				objects, err := shoot.Build(runtimeOf(config), shoot.Options{})
				if err != nil {
					t.Fatal(err)
				}

				return objects
			}

			present := build(nil).Shoot
			if tc.present != "" {
				present.Spec.Provider.Workers[0].ProviderConfig = &runtime.RawExtension{Raw: []byte(tc.present)}
			}

			objects := build(tc.required)
			objects.Keep(present)

			got := ""
			if config := objects.Shoot.Spec.Provider.Workers[0].ProviderConfig; config != nil {
				got = string(config.Raw)
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("worker configuration, -want +got:\n%s", diff)
			}
		})
	}
}
