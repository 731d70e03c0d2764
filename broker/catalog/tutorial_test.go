package catalog_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/catalog"
)

// TestCustomPlan loads the plan of docs/tutorials/custom-plan.md.
func TestCustomPlan(t *testing.T) {
	t.Parallel()

	tutorial, err := os.ReadFile("../../docs/tutorials/custom-plan.md")
	if err != nil {
		t.Fatal(err)
	}

	block := regexp.MustCompile(`(?s)metal\.yaml <<'EOF'\n(.*?)EOF`).FindSubmatch(tutorial)
	if block == nil {
		t.Fatal("the tutorial contains no plan")
	}

	offer, err := catalog.Load(shipped(t, map[string]string{
		"plans/metal.yaml": string(block[1]),
		"catalog.yaml":     strings.Replace(string(file(t, "catalog.yaml")), "plans: [", "plans: [metal, ", 1),
	}), options())
	if err != nil {
		t.Fatal(err)
	}

	metal, err := offer.Plan(serviceID, "0d1a9c1e-5b1f-4b53-9d4e-0c6f4b0b8a11")
	if err != nil {
		t.Fatal(err)
	}

	got, err := resolve(metal, order{InstanceID: instanceID, PlatformRegion: "cf-us10"})
	if err != nil {
		t.Fatal(err)
	}

	want := []any{"us-east-1", "m6i.8xlarge", 120, 2, 4, 1}
	made := []any{
		got.Region, got.Cluster.MachineType, got.Cluster.VolumeSizeGB, got.Cluster.AutoScalerMin, got.Cluster.AutoScalerMax, len(got.Cluster.Zones),
	}

	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("an order of the plan: -want +got\n%s", diff)
	}
}
