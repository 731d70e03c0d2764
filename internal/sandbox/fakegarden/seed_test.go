package fakegarden

import (
	"slices"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func seeded(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	objects, err := render(seedTemplate, seedValues([]string{"local", "second"}))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func all[T any](t *testing.T, kind string) []T {
	t.Helper()
	var found []T
	for _, object := range seeded(t) {
		if object.GetKind() != kind {
			continue
		}
		var typed T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &typed, true); err != nil {
			t.Fatal(err)
		}
		found = append(found, typed)
	}
	return found
}

func TestSeedHasNoDuplicatesAndNoUnknownKinds(t *testing.T) {
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, object := range seeded(t) {
		if !scheme.Recognizes(object.GroupVersionKind()) {
			t.Errorf("%s is not in the scheme", object.GroupVersionKind())
		}
		id := object.GroupVersionKind().String() + " " + object.GetNamespace() + "/" + object.GetName()
		if seen[id] {
			t.Errorf("%s occurs twice", id)
		}
		seen[id] = true
	}
}

func TestProfilesHaveTheNamesOfTheProvisioner(t *testing.T) {
	got := map[string]string{}
	for _, profile := range all[gardencorev1beta1.CloudProfile](t, "CloudProfile") {
		got[profile.Name] = profile.Spec.Type
	}
	want := map[string]string{"aws": "aws", "az": "azure", "gcp": "gcp", "converged-cloud-cp": "openstack"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("profiles -want +got:\n%s", diff)
	}
}

func TestEveryProviderHasCredentials(t *testing.T) {
	got := map[string]string{}
	for _, binding := range all[securityv1alpha1.CredentialsBinding](t, "CredentialsBinding") {
		got[binding.Namespace+"/"+binding.Name] = binding.Provider.Type
	}
	want := map[string]string{}
	for _, namespace := range []string{"garden-local", "garden-second"} {
		for _, provider := range []string{"aws", "azure", "gcp", "openstack"} {
			want[namespace+"/"+provider] = provider
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bindings -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"aws", "azure", "gcp", "openstack"}, providers()); diff != "" {
		t.Errorf("providers -want +got:\n%s", diff)
	}
}

func TestZonesHaveTheNamesOfTheProviders(t *testing.T) {
	want := map[string][]string{
		"eu-central-1": {"eu-central-1a", "eu-central-1b", "eu-central-1c"},
		"ca-central-1": {"ca-central-1a", "ca-central-1b", "ca-central-1d"},
		"us-west-1":    {"us-west-1a", "us-west-1b"},
		"westeurope":   {"1", "2", "3"},
		"us-central1":  {"us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f"},
		"me-central2":  {"me-central2-a", "me-central2-b", "me-central2-c"},
	}
	got := map[string][]string{}
	for _, profile := range all[gardencorev1beta1.CloudProfile](t, "CloudProfile") {
		for _, region := range profile.Spec.Regions {
			if _, wanted := want[region.Name]; !wanted {
				continue
			}
			for _, zone := range region.Zones {
				got[region.Name] = append(got[region.Name], zone.Name)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("zones -want +got:\n%s", diff)
	}
}

func TestEveryProfileOffersUpgrades(t *testing.T) {
	for _, profile := range all[gardencorev1beta1.CloudProfile](t, "CloudProfile") {
		var versions []string
		for _, version := range profile.Spec.Kubernetes.Versions {
			versions = append(versions, version.Version)
		}
		for _, wanted := range []string{"1.35.2", "1.35.4", "1.36.3"} {
			if !slices.Contains(versions, wanted) {
				t.Errorf("profile %s does not offer version %s, only %v", profile.Name, wanted, versions)
			}
		}
	}
}
