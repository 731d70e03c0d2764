package spec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// TestStoredOrders decodes orders that an earlier version of the Provisioner stored (commit ede58cf). Each file has all fields of
// its provider; stored_least.json has no optional fields.
func TestStoredOrders(t *testing.T) {
	t.Parallel()

	for _, name := range []string{"aws", "azure", "gcp", "openstack", "least"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			text, err := os.ReadFile(filepath.Join("testdata", "stored_"+name+".json"))
			if err != nil {
				t.Fatal(err)
			}

			order, err := spec.Decode(text)
			if err != nil {
				t.Fatal(err)
			}

			again, err := spec.Encode(order)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(strings.TrimSpace(string(text)), string(again)); diff != "" {
				t.Errorf("encoding a decoded order must yield the stored text: -want +got:\n%s", diff)
			}
		})
	}
}

func TestDecodeFields(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile(filepath.Join("testdata", "stored_aws.json"))
	if err != nil {
		t.Fatal(err)
	}

	order, err := spec.Decode(text)
	if err != nil {
		t.Fatal(err)
	}

	cluster, kyma := order.ClusterConfig.GardenerConfig, order.KymaConfig
	got := map[string]any{
		"name": order.Metadata.Name, "label": order.Metadata.Labels["stage"], "shoot": cluster.Name, "image": *cluster.MachineImage,
		"zone": cluster.ProviderSpecificConfig.AWSConfig.AWSZones[0].Name, "administrator": order.ClusterConfig.Administrators[1],
		"pool": cluster.AdditionalWorkers[0].Name, "profile": *kyma.Profile, "component": kyma.Components[1].Component,
		"secret": kyma.Components[0].Configuration[0].Value, "strategy": *kyma.Components[0].ConflictStrategy,
	}
	want := map[string]any{
		"name": "mine", "label": "dev", "shoot": "c-1234567", "image": "gardenlinux", "zone": "eu-central-1a", "administrator": "joe@example.com",
		"pool": "gpu", "profile": spec.ProfileProduction, "component": "compass-runtime-agent", "secret": "hush",
		"strategy": spec.ConflictStrategyReplace,
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDecodeVersions(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		`{"clusterConfig": null}`:               "",
		`{"version": 1, "clusterConfig": null}`: "",
		`{"version": 2, "clusterConfig": null}`: "its format version 2 is newer than 1, the newest",
		`{"clusterConfig": 1}`:                  "decoding an order",
	} {
		_, err := spec.Decode([]byte(text))
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
