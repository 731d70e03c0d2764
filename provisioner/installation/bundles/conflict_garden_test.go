//go:build garden

package bundles_test

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/installation/bundles"
)

// uploader calls a function for each upload.
type uploader func(bundle string, archive []byte) (string, error)

func (u uploader) Upload(_ context.Context, bundle string, archive []byte) (string, error) {
	return u(bundle, archive)
}

// TestConflictingUploads checks that a conflict is ignored if the Bundle has its content, and fails the operation otherwise.
func TestConflictingUploads(t *testing.T) {
	on := startHub(t)
	conflict := failure.New(failure.Conflict, "its Bundle has other content")

	upload := func(c *cluster, uploads bundles.Uploader) {
		c.via = func(manifests installation.Manifests) installation.Installer {
			made := c.installer(manifests, on.config)
			made.Uploads = uploads

			return made
		}
	}

	t.Run("from another replica", func(t *testing.T) {
		c, sent := newCluster(t, on, false), false
		upload(c, uploader(func(bundle string, archive []byte) (string, error) {
			if waiting, err := on.uploads.Upload(t.Context(), bundle, archive); err != nil || waiting != "" {
				return waiting, err
			}

			c.Eventually(func() string {
				found := &v1alpha1.Bundle{}
				if err := c.Get(t.Context(), client.ObjectKey{Name: bundle}, found); err != nil {
					return err.Error()
				}

				return map[bool]string{false: "it is " + string(found.Status.Phase)}[found.Status.Phase == v1alpha1.PhaseUnpacked]
			})

			sent = true

			return "", conflict
		}))
		c.install(release{"a": configMap("one", "1")}, c.part("a"))
		c.want("installed", map[string]string{"one": "1"})

		if !sent {
			t.Error("nothing was uploaded")
		}
	})

	t.Run("of other content", func(t *testing.T) {
		c, calls := newCluster(t, on, false), 0
		upload(c, uploader(func(string, []byte) (string, error) {
			calls++

			return "", conflict
		}))

		_, err := c.try(release{"a": configMap("one", "1")}, c.part("a"))
		if !failure.Is(err, failure.Conflict) || failure.Of(err).Text != "component 1 of 1 (a): its Bundle has other content" || calls != 1 {
			t.Errorf("after %d uploads: %v", calls, err)
		}
	})
}
