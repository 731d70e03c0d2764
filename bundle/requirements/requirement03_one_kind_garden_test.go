//go:build garden

package requirements_test

import (
	"bytes"
	"encoding/pem"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/archive"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/bundle/content"
)

// TestRequirement03OneKind runs the Bundle side of a class alone. A client in the place of another provisioner's BundleDeployment
// controller gets its content through contentURL, and nothing else.
func TestRequirement03OneKind(t *testing.T) {
	eachClass(t, func(t *testing.T, f *fixture) {
		name := "r3-" + f.class
		f.sources.set(name, has(manifest()))
		f.image(name)
		status := f.reaches(name, v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful).Status

		applyRoles(t)
		authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.server.Certificate().Raw})
		reader, err := content.NewClient(content.ClientOptions{
			Token: bundletest.Token(t, api, f.namespace, "reader", "bundle-reader"), CA: authority, Timeout: time.Minute, Limits: archive.DefaultLimits(),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		folder, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		if err := reader.Fetch(t.Context(), status.ContentURL, status.Digest, folder); err != nil {
			t.Fatal(err)
		}
		got, err := fs.ReadFile(folder.FS(), "manifests/a.yaml")
		want, _ := fs.ReadFile(manifest(), "manifests/a.yaml")
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %q, %v", got, err)
		}

		again, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if err := reader.Fetch(t.Context(), status.ContentURL, digestOf(nil), again); err == nil {
			t.Error("content with another digest than expected is accepted")
		}
		if err := reader.Fetch(t.Context(), "http"+status.ContentURL[len("https"):], status.Digest, again); err == nil {
			t.Error("a token is sent without TLS")
		}
	})
}
