package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/catalog"
)

// TestSkeleton checks that the skeleton of each plan has exactly the parameters that its schema requires.
func TestSkeleton(t *testing.T) {
	t.Parallel()

	changed := shipped(t, map[string]string{
		"plans/aws.yaml": string(file(t, "plans/aws.yaml")) + "\nrequired: [region, autoScalerMin, administrators, deletionProtection]\n",
	})

	offer, err := catalog.Load(changed, options())
	if err != nil {
		t.Fatal(err)
	}

	want := map[string]string{
		"aws":         `{"administrators":[],"autoScalerMin":3,"deletionProtection":false,"region":"eu-central-1"}`,
		"own_cluster": `{"kubeconfig":"<kubeconfig>","shootDomain":"<shootDomain>","shootName":"<shootName>"}`,
		"gcp":         `{}`,
	}
	got := map[string]string{}

	for _, plan := range offer.Plans() {
		if want[plan.Name] == "" {
			continue
		}

		var encoded strings.Builder

		encoder := json.NewEncoder(&encoded)
		encoder.SetEscapeHTML(false)

		if err := encoder.Encode(plan.Skeleton()); err != nil {
			t.Fatal(err)
		}

		got[plan.Name] = strings.TrimSpace(encoded.String())
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
