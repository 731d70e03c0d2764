package content_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/content"
)

// replica is a reader with one Bundle in the given phase. If the phase is empty, there is no Bundle.
type replica struct {
	client.Reader

	phase v1alpha1.Phase
	err   error
	reads int
}

// Get implements client.Reader.
func (r *replica) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	r.reads++

	if r.err == nil && r.phase == "" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "bundles"}, key.Name)
	}

	found, ok := object.(*v1alpha1.Bundle)
	if !ok {
		return errors.New("no Bundle")
	}

	*found = v1alpha1.Bundle{Status: v1alpha1.BundleStatus{Phase: r.phase}}
	if r.phase == v1alpha1.PhaseUnpacked {
		found.Status.Digest = "sha256:1"
	}

	return r.err
}

// empty is a Store without content.
type empty struct{ content.Store }

func (empty) Open(string) (io.ReadSeekCloser, int64, error) { return nil, 0, fs.ErrNotExist }

// TestStaleCache requests a Bundle from a replica whose cache is behind the API server. A replica that cannot know whether a Bundle exists
// must ask the client to try again, and must never deny content that exists.
func TestStaleCache(t *testing.T) {
	for name, row := range map[string]struct {
		reason    string
		cached    v1alpha1.Phase
		live      v1alpha1.Phase
		err       error
		want      int
		liveReads int
	}{
		"cached":          {reason: "the content is fetched", cached: v1alpha1.PhaseUnpacked, want: http.StatusServiceUnavailable},
		"created":         {reason: "the cache lacks the Bundle", live: v1alpha1.PhaseUnpacked, want: http.StatusServiceUnavailable, liveReads: 1},
		"unpacked":        {reason: "the cache lacks the last status", cached: v1alpha1.PhasePending, live: v1alpha1.PhaseUnpacked, want: http.StatusServiceUnavailable, liveReads: 1},
		"not unpacked":    {reason: "there is no content yet", cached: v1alpha1.PhasePending, live: v1alpha1.PhasePending, want: http.StatusNotFound, liveReads: 1},
		"unknown":         {reason: "the Bundle does not exist", want: http.StatusNotFound, liveReads: 1},
		"API server away": {reason: "it is not known whether the Bundle exists", err: errors.New("lost"), want: http.StatusServiceUnavailable, liveReads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			live := &replica{phase: row.live, err: row.err}
			server := content.NewServer(content.Options{
				Bundles: &replica{phase: row.cached}, Live: live, Store: empty{}, Ours: func(string) bool { return true },
				Fill: func(*v1alpha1.Bundle) {}, Uploaded: func(string) {}, Leading: func() bool { return true }, Log: logr.Discard(),
			})
			response := httptest.NewRecorder()
			server.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/bundles/app.tgz", nil))

			if response.Code != row.want || live.reads != row.liveReads {
				t.Errorf("%s: status %d instead of %d, %d reads of the API server", row.reason, response.Code, row.want, live.reads)
			}
		})
	}
}
