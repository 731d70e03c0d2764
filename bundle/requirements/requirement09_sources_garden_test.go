//go:build garden

package requirements_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
)

// TestRequirement09UnsupportedSource checks the condition for an unsupported source, and that the controller does not keep
// trying.
func TestRequirement09UnsupportedSource(t *testing.T) {
	eachClass(t, func(t *testing.T, f *fixture) {
		name := "r9-" + f.class
		f.sources.set(name, func(s *supply) { s.err = fmt.Errorf("%w: git", errTerminal) })
		bundle := f.bundle(name, v1alpha1.BundleSource{Type: v1alpha1.SourceTypeGit, Git: &v1alpha1.GitSource{
			Repository: "https://example.com/a.git", Ref: v1alpha1.GitRef{Branch: "main"},
		}})
		failed := f.reaches(name, v1alpha1.PhaseFailing, v1alpha1.ReasonUnpackFailed)
		if message := failed.Status.Conditions[0].Message; !strings.Contains(message, "not supported") || !strings.Contains(message, "git") {
			t.Errorf("the message is %q", message)
		}
		// The next Bundle passes through the same queue, and a label is an event for this one.
		if err := f.Patch(t.Context(), bundle, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))); err != nil {
			t.Fatal(err)
		}
		marker := "r9-marker-" + f.class
		f.sources.set(marker, has(manifest()))
		f.image(marker)
		f.reaches(marker, v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful)
		if count := f.sources.fetches(name); count != 1 {
			t.Errorf("a terminal error is tried %d times", count)
		}
	})
}

// TestRequirement09Retries checks that the controller tries again after transient errors and panics, until the source works.
func TestRequirement09Retries(t *testing.T) {
	eachClass(t, func(t *testing.T, f *fixture) {
		name := "r9-retry-" + f.class
		f.sources.set(name, func(s *supply) { s.err = errors.New("connection refused") })
		f.image(name)
		f.reaches(name, v1alpha1.PhaseFailing, v1alpha1.ReasonUnpackFailed)
		f.sources.set(name, func(s *supply) { s.panics = true })
		bundletest.Eventually(t, func() string {
			if f.sources.fetches(name) < 4 {
				return "the fetch is not tried again"
			}
			return ""
		})
		f.sources.set(name, has(manifest()))
		f.reaches(name, v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful)
	})
}

// TestRequirement09ConfigMaps checks that the creation of a ConfigMap ends the terminal failure of the Bundles that name it.
func TestRequirement09ConfigMaps(t *testing.T) {
	eachClass(t, func(t *testing.T, f *fixture) {
		name := "r9-maps-" + f.class
		f.sources.set(name, func(s *supply) { s.err = errTerminal })
		f.bundle(name, v1alpha1.BundleSource{Type: v1alpha1.SourceTypeConfigMaps, ConfigMaps: []v1alpha1.ConfigMapSource{
			{ConfigMap: v1alpha1.LocalReference{Name: "content"}},
		}})
		f.reaches(name, v1alpha1.PhaseFailing, v1alpha1.ReasonUnpackFailed)
		f.sources.set(name, has(manifest()))
		if err := f.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "content"}}); err != nil {
			t.Fatal(err)
		}
		f.reaches(name, v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful)
	})
}

// TestRequirement09PublicKeys checks that a change of public keys ends the terminal failure of the Bundles that name them.
func TestRequirement09PublicKeys(t *testing.T) {
	eachClass(t, func(t *testing.T, f *fixture) {
		keys := &v1alpha1.PublicKeyReference{Name: "keys"}
		for kind, c := range map[string]struct {
			verification v1alpha1.ImageVerification
			object       client.Object
		}{
			"secret":     {v1alpha1.ImageVerification{Secret: keys}, &corev1.Secret{}},
			"config-map": {v1alpha1.ImageVerification{ConfigMap: keys}, &corev1.ConfigMap{}},
		} {
			name := "r9-keys-" + kind + "-" + f.class
			f.sources.set(name, func(s *supply) { s.err = errUnsigned })
			f.bundle(name, v1alpha1.BundleSource{Type: v1alpha1.SourceTypeImage, Image: &v1alpha1.ImageSource{Ref: "example.com/a:v1", Verification: &c.verification}})
			f.reaches(name, v1alpha1.PhaseFailing, v1alpha1.ReasonSignatureInvalid)
			f.sources.set(name, has(manifest()))
			c.object.SetNamespace(f.namespace)
			c.object.SetName(keys.Name)
			if err := f.Create(t.Context(), c.object); err != nil {
				t.Fatal(err)
			}
			f.reaches(name, v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful)
		}
	})
}

// TestRequirement09Pins restarts the provisioner. If it still has the content, it must fetch nothing. Otherwise, it must fetch the pinned
// source, and reject content that differs from the digest in the status.
func TestRequirement09Pins(t *testing.T) {
	for name, class := range classes() {
		t.Run(name, func(t *testing.T) {
			first := start(t, newDisk(), class)
			bundle := "r9-pins-" + name
			first.sources.set(bundle, has(manifest()))
			first.image(bundle)
			before := first.reaches(bundle, v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful)
			first.stop()

			kept := start(t, first.disk, class)
			marker := "r9-pins-marker-" + name
			kept.sources.set(marker, has(other()))
			kept.image(marker)
			kept.reaches(marker, v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful)
			if count := kept.sources.fetches(bundle); count != 0 {
				t.Errorf("content that is present is fetched %d times", count)
			}
			kept.stop()

			lost := start(t, newDisk(), class)
			lost.sources.set(bundle, has(manifest()))
			lost.sources.set(marker, has(other()))
			bundletest.Eventually(t, func() string {
				if !lost.disk.Has(before.Status.Digest) {
					return "lost content is not fetched again"
				}
				return ""
			})
			after := lost.reaches(bundle, v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful)
			if after.Status.Digest != before.Status.Digest || after.Status.ResolvedSource.Image.Ref != before.Status.ResolvedSource.Image.Ref {
				t.Errorf("the status has changed from %+v to %+v", before.Status, after.Status)
			}
			lost.stop()

			moved := start(t, newDisk(), class)
			moved.sources.set(bundle, has(other()))
			moved.sources.set(marker, has(other()))
			failed := moved.reaches(bundle, v1alpha1.PhaseFailing, v1alpha1.ReasonUnpackFailed)
			if !strings.Contains(failed.Status.Conditions[0].Message, "the source has changed") || failed.Status.Digest != before.Status.Digest {
				t.Errorf("the status is %+v", failed.Status)
			}
		})
	}
}
