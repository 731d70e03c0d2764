//go:build garden

package deployments_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// TestRequirement10EmbeddedBundles verifies that the Bundle of a template is created again when somebody deletes it, that the previous
// Bundle stays while the new one cannot be unpacked, and that it is deleted after a pivot.
func TestRequirement10EmbeddedBundles(t *testing.T) {
	eachClass(t, func(t *testing.T, f *fixture) {
		first := f.content("1", f.configMap("one", "1"))
		f.create(first, func(made *v1alpha1.BundleDeployment) {
			made.Spec.Template.Metadata = metav1.ObjectMeta{Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "b"}}
		})
		name := f.awaitBundle(first)
		made := f.bundleOf(first)

		if made.Labels["team"] != "a" || made.Annotations["note"] != "b" || made.Labels[v1alpha1.LabelTemplateHash] == "" ||
			!metav1.IsControlledBy(made, f.deployment()) || made.Spec.ProvisionerClassName != "foreign" {
			t.Errorf("the Bundle is %+v", made)
		}

		if err := f.Delete(t.Context(), made); err != nil {
			t.Fatal(err)
		}

		f.await("the Bundle is not created again", func() bool { again := f.bundleOf(first); return again != nil && again.UID != made.UID })
		f.unpack()
		f.awaitActive(name)

		bad := f.content("bad", "")
		f.upgrade(bad)
		f.awaitBundle(bad)
		f.unpack()
		f.await("the failure is not reported", func() bool {
			for _, condition := range f.deployment().Status.Conditions {
				if condition.Type == v1alpha1.TypeHasValidBundle && condition.Reason == v1alpha1.ReasonUnpackFailed {
					return true
				}
			}

			return false
		})

		if f.deployment().Status.ActiveBundle != name || f.bundleOf(first) == nil || f.value(f, "one") != "1" {
			t.Errorf("the former Bundle does not stay: %+v", f.deployment().Status)
		}

		second := f.content("2", f.configMap("two", "2"))
		f.upgrade(second)
		next := f.awaitBundle(second)
		f.unpack()
		f.awaitActive(next)
		f.await("other Bundles remain", func() bool { return len(f.bundles()) == 1 })

		if f.value(f, "one") != "" || f.value(f, "two") != "2" {
			t.Errorf("one %q, two %q", f.value(f, "one"), f.value(f, "two"))
		}
	})
}
