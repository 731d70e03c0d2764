//go:build garden

package requirements_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
)

// applyRoles creates the ClusterRoles of resources/rbac.
func applyRoles(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "resources", "rbac", "bundles.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict([]byte(document), role); err != nil {
			t.Fatal(err)
		}
		if err := bundletest.Client(t, api).Create(t.Context(), role); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// expect sends a request and verifies the status of the response.
func (f *fixture) expect(want int, method, path, token string, body io.Reader) (http.Header, []byte) {
	f.Helper()
	response, text := f.request(method, path, token, body)
	if response.StatusCode != want {
		f.Errorf("%s %s: got %d %q, want %d", method, path, response.StatusCode, text, want)
	}
	return response.Header, text
}

// TestRequirement07Content checks who gets content, and which requests get none, with tokens of the API server.
func TestRequirement07Content(t *testing.T) {
	applyRoles(t)
	eachClass(t, func(t *testing.T, f *fixture) {
		name, waiting := "r7-"+f.class, "r7-waiting-"+f.class
		f.sources.set(name, has(manifest()))
		f.sources.set(waiting, func(s *supply) { s.pending = "waiting" })
		f.image(name)
		f.image(waiting)
		status := f.reaches(name, v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful).Status
		f.reaches(waiting, v1alpha1.PhasePending, v1alpha1.ReasonUnpackPending)
		path := "/bundles/" + name + ".tgz"
		if status.ContentURL != f.server.URL+path {
			t.Errorf("the contentURL is %s", status.ContentURL)
		}
		reader := bundletest.Token(t, api, f.namespace, "reader", "bundle-reader")
		stranger := bundletest.Token(t, api, f.namespace, "stranger")
		uploader := bundletest.Token(t, api, f.namespace, "uploader", "bundle-uploader")
		admin := bundletest.Token(t, api, f.namespace, "admin", "cluster-admin")

		headers, _ := f.expect(http.StatusUnauthorized, http.MethodGet, path, "", nil)
		if headers.Get("WWW-Authenticate") == "" {
			t.Error("no WWW-Authenticate")
		}
		f.expect(http.StatusUnauthorized, http.MethodGet, path, "invalid", nil)
		f.expect(http.StatusForbidden, http.MethodGet, path, stranger, nil)
		f.expect(http.StatusForbidden, http.MethodGet, path, uploader, nil)
		f.expect(http.StatusForbidden, http.MethodPut, path, reader, nil)
		f.expect(http.StatusForbidden, http.MethodPost, path, reader, nil)
		f.expect(http.StatusForbidden, http.MethodDelete, path, reader, nil)
		f.expect(http.StatusForbidden, http.MethodGet, "/bundles", reader, nil)
		f.expect(http.StatusForbidden, http.MethodPut, "/uploads/"+name+".tgz", reader, nil)
		for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodPatch} {
			f.expect(http.StatusMethodNotAllowed, method, path, admin, nil)
		}
		for _, missing := range []string{
			"/bundles/", "/bundles/unknown.tgz", "/bundles/" + waiting + ".tgz", "/bundles/" + name, "/bundles/../bundles/" + name + ".tgz",
			"/bundles/..%2f..%2fetc%2fpasswd", "/bundles//" + name + ".tgz", "/bundles/" + name + ".tgz/", "/bundles/%00.tgz",
		} {
			f.expect(http.StatusNotFound, http.MethodGet, missing, reader, nil)
		}

		headers, body := f.expect(http.StatusOK, http.MethodGet, path, reader, nil)
		if digestOf(body) != status.Digest || headers.Get("Etag") != `"`+status.Digest+`"` {
			t.Errorf("the digest of the content is %s, and the ETag %s", digestOf(body), headers.Get("Etag"))
		}
		want, err := pack(manifest())
		if err != nil || !bytes.Equal(body, want) {
			t.Errorf("the content differs from the stored content: %v", err)
		}
		headers, body = f.expect(http.StatusOK, http.MethodHead, path, reader, nil)
		if len(body) != 0 || headers.Get("Content-Length") != strconv.Itoa(len(want)) {
			t.Errorf("HEAD: %d bytes, %v", len(body), headers)
		}
		f.conditional(path, reader, status.Digest, want)
		f.revoked(path, reader)
		f.refilled(name, path, admin, want)
	})
}

// conditional checks ETags and ranges.
func (f *fixture) conditional(path, token, digest string, want []byte) {
	f.Helper()
	for header, c := range map[string]struct {
		value  string
		status int
		body   []byte
	}{
		"If-None-Match": {`"` + digest + `"`, http.StatusNotModified, nil},
		"If-Match":      {`"other"`, http.StatusPreconditionFailed, nil},
		"Range":         {"bytes=2-9", http.StatusPartialContent, want[2:10]},
	} {
		request, err := http.NewRequestWithContext(f.Context(), http.MethodGet, f.server.URL+path, nil)
		if err != nil {
			f.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set(header, c.value)
		response, body := f.send(request)
		if response.StatusCode != c.status || c.body != nil && !bytes.Equal(body, c.body) {
			f.Errorf("%s: %s: got %d %q", header, c.value, response.StatusCode, body)
		}
	}
}

// revoked removes the role of a client, which then has no access once the cache has expired.
func (f *fixture) revoked(path, token string) {
	f.Helper()
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: f.namespace + "-reader-bundle-reader"}}
	if err := f.Delete(f.Context(), binding); err != nil {
		f.Fatal(err)
	}
	bundletest.Eventually(f.T, func() string {
		if response, _ := f.request(http.MethodGet, path, token, nil); response.StatusCode != http.StatusForbidden {
			return "a client without a role still has access"
		}
		return ""
	})
}

// refilled deletes the content. A request must first be answered with 503 and Retry-After, and soon with the same content, which is
// fetched from the pinned source.
func (f *fixture) refilled(name, path, token string, want []byte) {
	f.Helper()
	f.disk.lose()
	headers, _ := f.expect(http.StatusServiceUnavailable, http.MethodGet, path, token, nil)
	if headers.Get("Retry-After") == "" {
		f.Error("no Retry-After")
	}
	bundletest.Eventually(f.T, func() string {
		if response, body := f.request(http.MethodGet, path, token, nil); response.StatusCode != http.StatusOK || !bytes.Equal(body, want) {
			return fmt.Sprintf("the content has not been restored: %d", response.StatusCode)
		}
		return ""
	})
	f.sources.set(name, func(s *supply) {
		if ref := s.from[len(s.from)-1].Image.Ref; !strings.Contains(ref, "@sha256:") {
			f.Errorf("the content was fetched again from %s, not by its pin", ref)
		}
	})
}

// TestRequirement07Uploads checks the responses to uploads.
func TestRequirement07Uploads(t *testing.T) {
	applyRoles(t)
	eachClass(t, func(t *testing.T, f *fixture) {
		uploader := bundletest.Token(t, api, f.namespace, "uploader", "bundle-uploader")
		reader := bundletest.Token(t, api, f.namespace, "reader", "bundle-reader")
		name, image := "r7-upload-"+f.class, "r7-image-"+f.class
		path := "/uploads/" + name + ".tgz"
		f.sources.set(name, func(s *supply) { s.pending = "waiting for an upload" })
		f.sources.set(image, has(manifest()))
		f.bundle(name, v1alpha1.BundleSource{Type: v1alpha1.SourceTypeUpload, Upload: &v1alpha1.UploadSource{}})
		f.image(image)
		f.reaches(name, v1alpha1.PhasePending, v1alpha1.ReasonUnpackPending)
		f.reaches(image, v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful)

		f.expect(http.StatusUnauthorized, http.MethodPut, path, "", strings.NewReader("a"))
		f.expect(http.StatusForbidden, http.MethodPut, path, reader, strings.NewReader("a"))
		f.expect(http.StatusNotFound, http.MethodPut, "/uploads/unknown.tgz", uploader, strings.NewReader("a"))
		f.expect(http.StatusConflict, http.MethodPut, "/uploads/"+image+".tgz", uploader, strings.NewReader("a"))
		f.expect(http.StatusRequestEntityTooLarge, http.MethodPut, path, uploader, bytes.NewReader(make([]byte, 1<<20+1)))
		f.expect(http.StatusRequestEntityTooLarge, http.MethodPut, path, uploader, io.LimitReader(zeros{}, 1<<20+1)) // without Content-Length

		f.sources.set(name, has(manifest()))
		f.expect(http.StatusCreated, http.MethodPut, path, uploader, strings.NewReader("archive"))
		f.reaches(name, v1alpha1.PhaseUnpacked, v1alpha1.ReasonUnpackSuccessful)
		bundletest.Eventually(t, func() string {
			response, text := f.request(http.MethodPut, path, uploader, strings.NewReader("archive"))
			if response.StatusCode != http.StatusNoContent {
				return fmt.Sprintf("the same upload again: %d %s", response.StatusCode, text)
			}
			return ""
		})
		f.expect(http.StatusConflict, http.MethodPut, path, uploader, strings.NewReader("another archive"))
	})
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(into []byte) (int, error) { return len(into), nil }
