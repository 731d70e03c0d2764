//go:build garden

package service_test

import (
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
)

// TestMovedSources moves the tag of an image and the branch of a repository after they were unpacked. It restarts the service, first with
// its store and then with an empty one. The content and its digest must not change.
func TestMovedSources(t *testing.T) {
	config := settings(t, bundletest.Namespace(t, api))
	from := newOrigins(t, config.Namespace)
	files := func(text string) map[string]string {
		return map[string]string{"manifests/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + text + "}\n"}
	}
	names, unpacked := map[string]string{}, map[string]v1alpha1.BundleStatus{}

	t.Run("unpacked", func(t *testing.T) {
		start(t, config)

		for _, kind := range []string{"image", "git"} {
			var source v1alpha1.BundleSource
			if err := yaml.Unmarshal([]byte(from.source(kind, "moved", files("original"))), &source); err != nil {
				t.Fatal(err)
			}

			names[kind] = create(from.T, config, source)
			unpacked[kind] = reaches(t, names[kind], v1alpha1.PhaseUnpacked)
			from.source(kind, "moved", files("moved"))
		}
	})

	for name, folder := range map[string]string{"restarted with its store": config.StoreDir, "restarted with an empty store": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			restarted := config
			restarted.StoreDir = folder

			start(t, restarted)

			connection := reader(t, settingsOf(restarted, bundletest.Namespace(t, api)))

			for kind, bundle := range names {
				bundletest.Eventually(t, func() string {
					status := reaches(t, bundle, v1alpha1.PhaseUnpacked)
					if was := unpacked[kind]; status.Digest != was.Digest {
						t.Fatalf("%s: the digest has changed from %s to %s", kind, was.Digest, status.Digest)
					}

					into, err := os.OpenRoot(t.TempDir())
					if err != nil {
						t.Fatal(err)
					}
					defer into.Close()

					if err := connection.Fetch(t.Context(), status.ContentURL, status.Digest, into); err != nil {
						return err.Error()
					}

					if text, err := into.ReadFile("manifests/a.yaml"); err != nil || string(text) != files("original")["manifests/a.yaml"] {
						t.Errorf("%s: the content is %q: %v", kind, text, err)
					}

					return ""
				})
			}
		})
	}

	for kind, bundle := range names {
		var found v1alpha1.Bundle
		if err := from.Get(t.Context(), client.ObjectKey{Name: bundle}, &found); err != nil {
			t.Fatal(err)
		}

		pin := found.Status.ResolvedSource
		if was := unpacked[kind].ResolvedSource; pin == nil || kind == "image" && pin.Image.Ref != was.Image.Ref || kind == "git" && pin.Git.Ref != was.Git.Ref {
			t.Errorf("%s: the pin is %+v instead of %+v", kind, pin, was)
		}
	}
}
