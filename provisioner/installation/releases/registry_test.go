package releases_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/provisioner/installation/releases"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage"
)

// registry is a fake read-only OCI registry with one repository.
type registry struct {
	*httptest.Server

	tags, blobs map[string][]byte
	calls       int
	// pins are the digests that the replicas have recorded.
	pins pins
}

// pins is a database that maps versions to digests.
type pins map[string]string

func (p pins) ReleaseDigest(_ context.Context, _, version string) (string, error) {
	if p[version] == "" {
		return "", storage.ErrNotFound
	}
	return p[version], nil
}

func (p pins) PinRelease(_ context.Context, _, version, digest string, _ time.Time) (string, error) {
	if p[version] == "" {
		p[version] = digest
	}
	return p[version], nil
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{tags: map[string][]byte{}, blobs: map[string][]byte{}, pins: pins{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/team/releases/tags/list", func(w http.ResponseWriter, _ *http.Request) {
		var tags []string
		for tag := range r.tags {
			tags = append(tags, tag)
		}
		json.NewEncoder(w).Encode(map[string]any{"name": "team/releases", "tags": tags})
	})
	mux.HandleFunc("GET /v2/team/releases/manifests/{reference}", func(w http.ResponseWriter, request *http.Request) {
		manifest, known := r.tags[request.PathValue("reference")]
		if !known {
			manifest, known = r.blobs[request.PathValue("reference")]
		}
		r.send(w, manifest, known, "application/vnd.oci.image.manifest.v1+json")
	})
	mux.HandleFunc("GET /v2/team/releases/blobs/{digest}", func(w http.ResponseWriter, request *http.Request) {
		blob, known := r.blobs[request.PathValue("digest")]
		r.send(w, blob, known, "application/octet-stream")
	})
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.calls++
		if user, password, _ := request.BasicAuth(); user != "reader" || password != "hush" {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, request)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *registry) send(w http.ResponseWriter, content []byte, known bool, kind string) {
	if !known {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	w.Header().Set("Docker-Content-Digest", digest(content))
	w.Write(content)
}

func digest(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

// push adds an artifact with the given tag. Its layers have the media type kind.
func (r *registry) push(tag, kind string, layers ...[]byte) {
	described := []map[string]any{}
	for _, layer := range layers {
		r.blobs[digest(layer)] = layer
		described = append(described, map[string]any{"mediaType": kind, "digest": digest(layer), "size": len(layer)})
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": described,
		"config": map[string]any{"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest([]byte("{}")), "size": 2},
	})
	if err != nil {
		panic(err)
	}
	r.tags[tag], r.blobs[digest(manifest)] = manifest, manifest
}

func (r *registry) store(t *testing.T, cache string) *releases.Registry {
	t.Helper()
	return r.storeFor(t, cache, "reader", "hush")
}

func (r *registry) storeFor(t *testing.T, cache, user string, password secret.String) *releases.Registry {
	t.Helper()
	return r.wrapped(t, cache, user, password, nil)
}

func (r *registry) wrapped(t *testing.T, cache, user string, password secret.String, wrap func(http.RoundTripper) http.RoundTripper,
) *releases.Registry {
	t.Helper()
	store, err := releases.NewRegistry(releases.RegistryOptions{
		Pins: r.pins, Now: time.Now, Repository: strings.TrimPrefix(r.URL, "http://") + "/team/releases", Cache: cache, Username: user, Password: password, Insecure: true,
		WrapTransport: wrap,
	})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// packed returns a tar.gz of files whose paths start with the prefix. A name such as link->target makes a symbolic link.
func packed(t *testing.T, prefix string, files map[string]string) []byte {
	t.Helper()
	content := &bytes.Buffer{}
	zipped := gzip.NewWriter(content)
	archive := tar.NewWriter(zipped)
	for name, text := range files {
		header := &tar.Header{Name: prefix + name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if target, link := strings.CutSuffix(name, "->"); link {
			header = &tar.Header{Name: target, Linkname: text, Typeflag: tar.TypeSymlink}
			text = ""
		}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		archive.Write([]byte(text))
	}
	archive.Close()
	zipped.Close()
	return content.Bytes()
}

const folderType = "application/vnd.oci.image.layer.v1.tar+gzip"

func release(t *testing.T, prefix string) []byte {
	t.Helper()
	files := map[string]string{}
	for name, file := range sample() {
		files[strings.TrimPrefix(name, "1.0.0/")] = string(file.Data)
	}
	return packed(t, prefix, files)
}

func TestReleasesOfARegistry(t *testing.T) {
	for name, prefix := range map[string]string{"the folder's content": "", "the folder itself": "1.0.0/", "with a dot": "./"} {
		t.Run(name, func(t *testing.T) {
			registry, cache := newRegistry(t), t.TempDir()
			registry.push("1.0.0", folderType, release(t, prefix))
			catalog := releases.New(registry.store(t, cache))
			if err := catalog.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			registry.push("1.0.0", folderType, []byte("moved"))
			registry.calls = 0
			again, err := releases.New(registry.store(t, cache)).Plan(t.Context(), wants())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("base agent", names(again)); diff != "" || registry.calls > 0 {
				t.Errorf("a cached release was fetched again: %d calls, -want +got:\n%s", registry.calls, diff)
			}
			_, err = catalog.Plan(t.Context(), spec.Kyma{Version: "2.0.0"})
			if want := `there is no release "2.0.0"; the releases are 1.0.0`; !failure.Is(err, failure.Invalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}

func TestInvalidArtifacts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		kind   string
		layers [][]byte
		want   string
	}{
		"image":      {"the tag may be an image", folderType, [][]byte{[]byte("a"), []byte("b")}, "must be an artifact with one layer, but has 2 layers"},
		"other type": {"the tag may be a chart", "application/vnd.cncf.helm.chart.content.v1", [][]byte{[]byte("a")}, "must be a tar.gz of a folder"},
		"no gzip":    {"the content must match its media type", folderType, [][]byte{[]byte("a")}, "not a valid tar archive"},
		"elsewhere":  {"a file must stay inside the cache", folderType, [][]byte{packed(t, "", map[string]string{"../x": "y"})}, `the path "../x" is outside the folder`},
		"absolute":   {"an absolute path leaves the cache", folderType, [][]byte{packed(t, "", map[string]string{"/tmp/x": "y"})}, `the path "/tmp/x" is outside the folder`},
		"twice":      {"a second file with the same path must not replace the first", folderType, [][]byte{packed(t, "", map[string]string{"x": "y", "./x": "z"})}, `x" occurs twice, or both as a file and as a folder`},
		"folder":     {"a file cannot also be a folder", folderType, [][]byte{packed(t, "", map[string]string{"x": "y", "x/y": "z"})}, `occurs twice, or both as a file and as a folder`},
		"link":       {"a link can leave the cache", folderType, [][]byte{packed(t, "", map[string]string{"x->": "/etc"})}, `"x" is neither a file nor a folder`},
	} {
		t.Run(name, func(t *testing.T) {
			registry, cache := newRegistry(t), t.TempDir()
			registry.push("1.0.0", tc.kind, tc.layers...)
			_, err := releases.New(registry.store(t, cache)).Plan(t.Context(), wants())
			if !failure.Is(err, failure.Permanent) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
			left, err := os.ReadDir(cache)
			if err != nil || len(left) > 0 {
				t.Errorf("%s: the cache contains %v, %v", tc.reason, left, err)
			}
		})
	}
}

func TestDamagedDownload(t *testing.T) {
	registry, cache := newRegistry(t), t.TempDir()
	whole := release(t, "")
	registry.push("1.0.0", folderType, whole)
	catalog := releases.New(registry.store(t, cache))
	for _, at := range []int{0, len(whole) / 2, len(whole) - 1} {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 1
		registry.blobs[digest(whole)] = damaged
		if _, err := catalog.Plan(t.Context(), wants()); !failure.Is(err, failure.Transient) {
			t.Errorf("damaged at %d, want a transient error: %v", at, err)
		}
		if _, err := os.Stat(filepath.Join(cache, "1.0.0")); err == nil {
			t.Errorf("damaged at %d, and cached", at)
		}
	}
	registry.blobs[digest(whole)] = whole
	if _, err := catalog.Plan(t.Context(), wants()); err != nil {
		t.Errorf("an undamaged download fails: %v", err)
	}
}

func TestRegistryErrors(t *testing.T) {
	const repair = "rejected the credentials. An operator must correct APP_KYMA_RELEASES_USERNAME and APP_KYMA_RELEASES_PASSWORD"
	registry := newRegistry(t)
	registry.push("1.0.0", folderType, release(t, ""))
	answering := func(status int) *releases.Registry {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(server.Close)
		other := newRegistry(t)
		other.URL = server.URL
		return other.store(t, t.TempDir())
	}
	gone := newRegistry(t)
	gone.Close()
	for name, tc := range map[string]struct {
		reason string
		store  *releases.Registry
		want   string
	}{
		"wrong password": {"an operator must correct the credentials", registry.storeFor(t, t.TempDir(), "reader", "verysecret"), repair},
		"no password":    {"the registry requires credentials", registry.storeFor(t, t.TempDir(), "", ""), repair},
		"no right":       {"the user lacks the permission", answering(http.StatusForbidden), repair},
		"broken":         {"the outage is temporary", answering(http.StatusBadGateway), "the release registry does not respond correctly"},
		"unavailable":    {"the outage is temporary", gone.store(t, t.TempDir()), "the release registry does not respond correctly"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := releases.New(tc.store).Plan(t.Context(), wants())
			if !failure.Is(err, failure.Transient) || !strings.HasPrefix(failure.Of(err).Text, "release 1.0.0 cannot be fetched: ") ||
				!strings.Contains(failure.Of(err).Text, tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
			if text := failure.Of(err).Text; strings.Contains(text, "127.0.0.1") || strings.Contains(err.Error(), "verysecret") {
				t.Errorf("%s: %q contains a secret or an address", tc.reason, err)
			}
		})
	}
}

// TestRegistryOutage verifies that calls fail immediately while the circuit breaker is open. The error says when the outage
// started.
func TestRegistryOutage(t *testing.T) {
	const calls = 2
	system := upstream.New(upstream.Options{
		Name: "releases", Title: "the release registry", Component: failure.ComponentReleases, Calls: calls, Variable: "CALLS",
	})
	registry := newRegistry(t)
	store := registry.wrapped(t, t.TempDir(), "reader", "hush", system.Transport)
	catalog := releases.New(store)
	for i := range 3 * calls {
		version := fmt.Sprintf("1.0.%d", i)
		_, err := catalog.Plan(t.Context(), spec.Kyma{Version: version})
		if !failure.Is(err, failure.Invalid) {
			t.Errorf("a missing release: %v", err)
		}
		registry.push(version, folderType, release(t, ""))
		if _, err := store.Open(t.Context(), version); err != nil {
			t.Error(err)
		}
		if err := store.Probe(t.Context()); err != nil && failure.Is(err, failure.Transient) {
			t.Errorf("a healthy registry: %v", err)
		}
	}
	if status := system.Status(); status.InFlight > 0 || status.State != upstream.Closed {
		t.Errorf("want no call in flight and no failures: %+v", status)
	}
	registry.Close()
	var err error
	for range 6 {
		_, err = catalog.Plan(t.Context(), spec.Kyma{Version: "2.0.0"})
	}
	known := failure.Of(err)
	const want = "release 2.0.0 cannot be fetched: the release registry is unavailable: 5 calls in a row have failed since "
	if !strings.HasPrefix(known.Text, want) || known.Kind != failure.Transient || known.Component != failure.ComponentReleases {
		t.Errorf("got %+v, want an error with the prefix %q", known, want)
	}
}

// TestMovedTag opens a release with two replicas that share a database, each with a cache of its own. The tag is moved in between.
func TestMovedTag(t *testing.T) {
	t.Parallel()
	source := newRegistry(t)
	source.push("1.0.0", folderType, release(t, "first/"))
	first := source.tags["1.0.0"]
	content := func(cache string) string {
		t.Helper()
		folder, err := source.store(t, cache).Open(t.Context(), "1.0.0")
		if err != nil {
			t.Fatal(err)
		}
		text, err := fs.ReadFile(folder, "marker.yaml")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := content(t.TempDir()); got != "" {
		t.Errorf("the first release has a marker: %q", got)
	}
	source.push("1.0.0", folderType, packed(t, "", map[string]string{"marker.yaml": "moved"}))
	cache := t.TempDir()
	if got := content(cache); got != "" {
		t.Errorf("another replica installs the artifact to which the tag was moved: %q", got)
	}
	if want := digest(first); source.pins["1.0.0"] != want {
		t.Errorf("recorded %s, want %s", source.pins["1.0.0"], want)
	}
	delete(source.blobs, digest(first))
	if got := content(cache); got != "" {
		t.Errorf("the cache does not have the recorded artifact: %q", got)
	}
	_, err := source.store(t, t.TempDir()).Open(t.Context(), "1.0.0")
	if !failure.Is(err, failure.Transient) || !strings.Contains(failure.Of(err).Text, "push the same artifact again") {
		t.Errorf("the recorded artifact was deleted: %v", err)
	}
	source.pins["1.0.0"] = ""
	if got := content(t.TempDir()); got != "moved" {
		t.Errorf("without a record, the tag decides: %q", got)
	}
}
