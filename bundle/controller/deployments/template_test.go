package deployments

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

func hashOf(t *testing.T, template v1alpha1.BundleTemplate) string {
	t.Helper()

	hash, err := templateHash(template)
	if err != nil {
		t.Fatal(err)
	}

	return hash
}

func template(ref string, labels map[string]string) v1alpha1.BundleTemplate {
	return v1alpha1.BundleTemplate{
		Metadata: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"note": "x"}},
		Spec: v1alpha1.TemplateSpec{ProvisionerClassName: "c", Source: v1alpha1.BundleSource{
			Type: v1alpha1.SourceTypeImage, Image: &v1alpha1.ImageSource{Ref: ref},
		}},
	}
}

// TestTemplateHash verifies which changes to a template require another Bundle.
func TestTemplateHash(t *testing.T) {
	base := hashOf(t, template("r:1", map[string]string{"a": "1", "b": "2"}))

	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.BundleTemplate)
		same   bool
	}{
		"order":      {"maps have no order", func(t *v1alpha1.BundleTemplate) { t.Metadata.Labels = map[string]string{"b": "2", "a": "1"} }, true},
		"name":       {"the name is not used", func(t *v1alpha1.BundleTemplate) { t.Metadata.Name = "ignored" }, true},
		"label":      {"a label is part of the Bundle", func(t *v1alpha1.BundleTemplate) { t.Metadata.Labels["a"] = "2" }, false},
		"annotation": {"an annotation is part of the Bundle", func(t *v1alpha1.BundleTemplate) { t.Metadata.Annotations = nil }, false},
		"class":      {"another controller unpacks it", func(t *v1alpha1.BundleTemplate) { t.Spec.ProvisionerClassName = "d" }, false},
		"source":     {"the content differs", func(t *v1alpha1.BundleTemplate) { t.Spec.Source.Image.Ref = "r:2" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			changed := template("r:1", map[string]string{"a": "1", "b": "2"})
			tc.change(&changed)

			if same := hashOf(t, changed) == base; same != tc.same {
				t.Errorf("%s: the same hash: %t, want %t", tc.reason, same, tc.same)
			}
		})
	}
}

// TestHashesWithLeadingZeros computes many hashes, of which some begin with zeros, and verifies that each gives a valid name.
func TestHashesWithLeadingZeros(t *testing.T) {
	short := 0

	for i := range 3000 {
		hash := hashOf(t, template(strings.Repeat("r", i+1), nil))
		if len(hash) < 43 {
			short++
		}

		name := bundleName(strings.Repeat("n", 63), hash)
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 || len(name) > 63 || !strings.HasSuffix(name, "-"+hash) {
			t.Fatalf("%q: %v", name, problems)
		}
	}

	if short == 0 {
		t.Error("no hash begins with zeros")
	}
}

// TestNamesOfBundles verifies names of deployments with the same beginning, and at the maximum length.
func TestNamesOfBundles(t *testing.T) {
	hash := hashOf(t, template("r:1", nil))
	seen := map[string]string{}

	for _, deployment := range []string{
		"a", "short-name", "runtime-0f5c2d1e-5a1c-4c55-b8dd-b6c9d8f2a7aa-istio", "runtime-0f5c2d1e-5a1c-4c55-b8dd-b6c9d8f2a7aa-telemetry",
		"abcdefg.-x" + strings.Repeat("y", 40), strings.Repeat("a", 62) + "b", strings.Repeat("a", 63), "a.b.c.d.e.f.g.h.i.j.k.l.m",
	} {
		name := bundleName(deployment, hash)
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 || len(name) > 63 || !strings.HasSuffix(name, "-"+hash) {
			t.Errorf("%s: %q: %v", deployment, name, problems)
		}

		if other, taken := seen[name]; taken {
			t.Errorf("%s and %s have the same Bundle %s", deployment, other, name)
		}

		seen[name] = deployment
	}

	if got, want := bundleName("short-name", hash), "short-name-"+hash; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
