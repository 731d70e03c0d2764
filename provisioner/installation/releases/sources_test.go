package releases_test

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream/networks"
	"github.com/environment-broker/environment-broker/provisioner/installation/releases"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// pod is a manifest.
const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: \"${name}\"}\n"

// sourceServer is an HTTPS server with the files of sources. A handler replaces the file of its path.
type sourceServer struct {
	*httptest.Server

	files    map[string]string
	handlers map[string]http.HandlerFunc
	requests atomic.Int32
}

func newSourceServer(t *testing.T) *sourceServer {
	t.Helper()

	s := &sourceServer{files: map[string]string{}, handlers: map[string]http.HandlerFunc{}}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)

		content, known := s.files[r.URL.Path]
		handler := s.handlers[r.URL.Path]

		switch {
		case handler != nil:
			handler(w, r)
		case !known:
			http.NotFound(w, r)
		default:
			_, _ = w.Write([]byte(content))
		}
	}))
	t.Cleanup(s.Close)

	return s
}

// source returns the sourceURL of a file with the content.
func (s *sourceServer) source(path, content string) string {
	return fmt.Sprintf("%s%s#sha256=%x", s.URL, path, sha256.Sum256([]byte(content)))
}

// catalog returns a catalog that trusts the server and connects to the networks.
func (s *sourceServer) catalog(t *testing.T, cache string, timeout time.Duration, allowed ...string) *releases.Catalog {
	t.Helper()

	permitted, err := networks.Parse(allowed)
	if err != nil {
		t.Fatal(err)
	}

	authorities := x509.NewCertPool()
	authorities.AddCert(s.Certificate())

	return releases.New(releases.Folder{FS: sample()}).WithSources(releases.NewSources(releases.SourcesOptions{
		Cache: cache, Networks: permitted, Timeout: timeout, Authorities: authorities,
	}))
}

// external returns a component with a source.
func external(name, source string, configuration ...*spec.Entry) *spec.Component {
	return &spec.Component{Component: name, Namespace: "own", SourceURL: &source, Configuration: configuration}
}

// TestPlansWithSources checks what a component with a source takes from the release and from the order, and that planning sends no
// request.
func TestPlansWithSources(t *testing.T) {
	server := newSourceServer(t)
	catalog := server.catalog(t, t.TempDir(), 0, "127.0.0.0/8")
	source := server.source("/file.yaml", pod)

	plan, err := catalog.Plan(t.Context(), wants(external("agent", source, value("new", "n")), external("added", source, value("name", "x"))))
	if err != nil {
		t.Fatal(err)
	}

	got := map[string]string{}
	for _, component := range plan.Components {
		got[component.Name] = fmt.Sprint(component.Source, " ", component.Namespace, " ", component.DependsOn, " ", component.External, " ", component.Values)
	}

	want := map[string]string{
		"base":  "1.0.0/base system [] false map[domain:d size:small]",
		"agent": source + " own [base] true map[new:n]",
		"added": source + " own [] true map[name:x]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	if count := server.requests.Load(); count > 0 {
		t.Errorf("planning has sent %d requests", count)
	}
}

func TestInvalidSources(t *testing.T) {
	const digest = "#sha256=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

	server := newSourceServer(t)
	catalog := server.catalog(t, t.TempDir(), 0)

	for name, c := range map[string]struct{ reason, source, want string }{
		"valid":       {"a pinned file", "https://example.com/a.tgz" + digest, ""},
		"port":        {"a server may have any port", "https://example.com:8443/a.tgz" + digest, ""},
		"http":        {"others could read the request", "http://example.com/a.tgz" + digest, "must have the form https://HOST/FILE#sha256=DIGEST"},
		"file":        {"files of the Provisioner are not for callers", "file:///etc/passwd" + digest, "must have the form"},
		"no host":     {"there is nothing to call", "https:///a.tgz" + digest, "must have the form"},
		"no file":     {"there is nothing to get", "https://example.com" + digest, "must have the form"},
		"malformed":   {"no URL", "https://[" + digest, "must have the form"},
		"password":    {"the URL appears in responses", "https://me:hush@example.com/a" + digest, "must contain neither credentials nor a query"},
		"query":       {"a query may contain a token", "https://example.com/a?token=hush" + digest, "must contain neither credentials nor a query"},
		"unpinned":    {"the content could change during an installation", "https://example.com/a.tgz", "must end with the digest of the file"},
		"short":       {"no digest", "https://example.com/a.tgz#sha256=e3b0", "must end with the digest of the file"},
		"upper case":  {"there is one form of a digest", "https://example.com/a.tgz" + strings.ToUpper(digest), "must end with the digest of the file"},
		"other":       {"weak digests do not pin", "https://example.com/a.tgz#md5=d41d8cd98f00b204e9800998ecf8427e", "must end with the digest of the file"},
		"more fields": {"there are no other options", "https://example.com/a.tgz" + digest + "&path=x", "must end with the digest of the file"},
	} {
		_, err := catalog.Plan(t.Context(), wants(external("lone", c.source)))
		if c.want == "" && err == nil {
			continue
		}

		if !failure.Is(err, failure.Invalid) || c.want == "" || !strings.Contains(failure.Of(err).Text, "kymaConfig.components[0].sourceURL: "+c.want) ||
			strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %s: want %q, got %v", name, c.reason, c.want, err)
		}
	}

	if _, err := catalog.Plan(t.Context(), wants(external("Upper", "https://example.com/a"+digest, nil))); err == nil ||
		!strings.Contains(err.Error(), `"Upper" is not a valid name`) || !strings.Contains(err.Error(), `component "Upper" accepts no configuration`) {
		t.Errorf("an invalid name and an entry that is null: %v", err)
	}

	off := releases.New(releases.Folder{FS: sample()})
	if _, err := off.Manifests(t.Context(), "https://example.com/a"+digest); !failure.Is(err, failure.Permanent) ||
		!strings.Contains(err.Error(), "APP_KYMA_SOURCES_CACHE_PATH") {
		t.Errorf("an operation of a Provisioner whose sources were turned off: %v", err)
	}
}

// TestDownloads checks the files of sources, each from a server that answers once.
func TestDownloads(t *testing.T) {
	archive := string(packed(t, "repository-1.0/", map[string]string{"a.yaml": pod, "sub/b.yml": pod, "README.md": "# no manifest"}))

	for name, c := range map[string]struct {
		reason, content string
		want            []string
		redirected      bool
	}{
		"YAML":     {"a file of manifests", pod, []string{"manifest.yaml"}, false},
		"archive":  {"a folder of manifests", archive, []string{"repository-1.0/a.yaml", "repository-1.0/sub/b.yml"}, false},
		"redirect": {"hosts of releases redirect to their storage", pod, []string{"manifest.yaml"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := newSourceServer(t)
			server.files["/file"] = c.content
			path := "/file"

			if c.redirected {
				path = "/redirected"
				server.handlers[path] = http.RedirectHandler(server.URL+"/file", http.StatusFound).ServeHTTP
			}

			cache := t.TempDir()
			first := server.catalog(t, cache, 0, "127.0.0.0/8")

			files, err := first.Manifests(t.Context(), server.source(path, c.content))
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}

			var got []string
			for _, file := range files {
				got = append(got, file.Name)

				if string(file.Content) != pod {
					t.Errorf("%s contains %q", file.Name, file.Content)
				}
			}

			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}

			server.Close()

			restarted := server.catalog(t, cache, 0, "127.0.0.0/8")
			if again, err := restarted.Manifests(t.Context(), server.source(path, c.content)); err != nil || !cmp.Equal(files, again) {
				t.Errorf("a cached source needs no server: %v", err)
			}
		})
	}
}

// TestDownloadFaults has a case for each row of the table in docs/operator/releases.md.
func TestDownloadFaults(t *testing.T) {
	const transient, permanent = failure.Transient, failure.Permanent

	server := newSourceServer(t)
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a server that is not allowed was called") }))
	t.Cleanup(other.Close)

	release := make(chan struct{})
	defer close(release)

	link := strings.Replace(server.URL, "127.0.0.1", "127.0.0.2", 1)
	server.files["/large"] = strings.Repeat("# a comment\n", 1<<20)
	server.files["/bomb"] = string(archiveWithFile(t, 33<<20))
	server.files["/empty"] = string(packed(t, "", map[string]string{"README.md": "x"}))
	server.files["/damaged"] = "\x1f\x8bdamaged"
	server.files["/outside"] = string(packed(t, "../", map[string]string{"a.yaml": pod}))

	maps.Copy(server.handlers, map[string]http.HandlerFunc{
		"/busy":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"/throttled": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"/forbidden": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"/plain":     http.RedirectHandler("http://127.0.0.1/secret-of-redirect", http.StatusFound).ServeHTTP,
		"/private":   http.RedirectHandler(link+"/file", http.StatusFound).ServeHTTP,
		"/loop":      http.RedirectHandler(server.URL+"/loop", http.StatusFound).ServeHTTP,
		"/slow":      func(http.ResponseWriter, *http.Request) { <-release },
		"/cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("apiVersion"))
		},
	})

	for name, c := range map[string]struct {
		reason, path string
		kind         failure.Kind
		want         string
		networks     string
	}{
		"missing":   {"the address is wrong", "/missing", permanent, "responds with status 404 Not Found", ""},
		"forbidden": {"the file is not public", "/forbidden", permanent, "responds with status 403 Forbidden", ""},
		"busy":      {"the server may recover", "/busy", transient, "responds with status 503 Service Unavailable", ""},
		"throttled": {"the server may recover", "/throttled", transient, "responds with status 429 Too Many Requests", ""},
		"slow":      {"a download has a time limit", "/slow", transient, "it did not send the file in time", ""},
		"cut":       {"an incomplete file is not a wrong one", "/cut", transient, "the connection failed", ""},
		"digest":    {"the file was changed", "/other", permanent, "check the file, or correct the digest in the order", ""},
		"large":     {"a file has a maximum size", "/large", permanent, "is larger than 8 MiB: split it into several components", ""},
		"bomb":      {"so has its content", "/bomb", permanent, "at most 32 MiB when unpacked", ""},
		"empty":     {"there is nothing to install", "/empty", permanent, "contains no YAML file", ""},
		"damaged":   {"the file is no archive", "/damaged", permanent, "must be a YAML file, or a tar.gz", ""},
		"outside":   {"an archive writes to its folder only", "/outside", permanent, "must be a YAML file, or a tar.gz", ""},
		"plain":     {"a redirect could drop HTTPS", "/plain", permanent, "it redirects to an address without HTTPS, or more than 5 times", ""},
		"loop":      {"redirects end", "/loop", permanent, "it redirects to an address without HTTPS, or more than 5 times", ""},
		"private": {
			"a redirect could lead into the operator's network", "/private", permanent,
			"its address is not public, and APP_KYMA_SOURCES_NETWORKS", "",
		},
		"loopback": {"so could the address itself", "/file", permanent, "its address is not public, and APP_KYMA_SOURCES_NETWORKS", "10.0.0.0/8"},
	} {
		t.Run(name, func(t *testing.T) {
			allowed := c.networks
			if allowed == "" {
				allowed = "127.0.0.1/32"
			}

			timeout := time.Minute
			if name == "slow" {
				timeout = 100 * time.Millisecond
			}

			source := server.source(c.path, server.files[c.path])
			if name == "digest" {
				server.files[c.path] = "changed"
			}

			_, err := server.catalog(t, t.TempDir(), timeout, allowed).Manifests(t.Context(), source)
			if failure.KindOf(err) != c.kind || !strings.Contains(failure.Of(err).Text, c.want) || strings.Contains(err.Error(), "secret-of-redirect") {
				t.Errorf("%s: want %s %q, got %s %v", c.reason, c.kind, c.want, failure.KindOf(err), err)
			}
		})
	}
}

// TestUnwritableCache checks that an operator learns why nothing is installed.
func TestUnwritableCache(t *testing.T) {
	server := newSourceServer(t)
	cache := filepath.Join(t.TempDir(), "file")

	if err := os.WriteFile(cache, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	_, err := server.catalog(t, cache, 0, "127.0.0.0/8").Manifests(t.Context(), server.source("/file", pod))
	if !failure.Is(err, failure.Transient) || !strings.Contains(failure.Of(err).Text, "an operator must check the folder APP_KYMA_SOURCES_CACHE_PATH") {
		t.Errorf("got %v", err)
	}
}

// TestConcurrentDownloads checks that downloads beyond the limit of a replica wait instead of occupying workers.
func TestConcurrentDownloads(t *testing.T) {
	const limit = 4

	server := newSourceServer(t)
	started, release := make(chan struct{}), make(chan struct{})
	server.handlers["/slow"] = func(w http.ResponseWriter, _ *http.Request) {
		started <- struct{}{}

		<-release

		_, _ = w.Write([]byte(pod))
	}
	server.files["/fast"] = "# another file\n" + pod

	catalog := server.catalog(t, t.TempDir(), 0, "127.0.0.0/8")
	results := make(chan error)

	for range limit {
		go func() {
			_, err := catalog.Manifests(t.Context(), server.source("/slow", pod))
			results <- err
		}()
	}

	for range limit {
		<-started
	}

	fast := server.source("/fast", server.files["/fast"])
	if _, err := catalog.Manifests(t.Context(), fast); !failure.Is(err, failure.Transient) || !strings.Contains(err.Error(), "is waiting for other downloads") {
		t.Errorf("the next download: %v", err)
	}

	close(release)

	for range limit {
		if err := <-results; err != nil {
			t.Errorf("concurrent downloads of the same source: %v", err)
		}
	}

	if _, err := catalog.Manifests(t.Context(), fast); err != nil {
		t.Errorf("once the others have ended: %v", err)
	}
}
