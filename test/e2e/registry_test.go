package e2e

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/environment-broker/environment-broker/internal/secret"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
)

const (
	registryUser     = "robot"
	registryPassword = "correct-horse"
)

// ociRegistry is an OCI registry that requires a token, issues tokens for a password, and can be unavailable.
type ociRegistry struct {
	*testing.T
	*httptest.Server

	content http.Handler
	away    atomic.Bool
	// calls counts all requests, also unanswered ones.
	calls atomic.Int64
}

func newRegistry(t *testing.T) *ociRegistry {
	t.Helper()

	r := &ociRegistry{T: t, content: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)

	return r
}

// ServeHTTP implements http.Handler.
func (r *ociRegistry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	const token = "a-token"

	r.calls.Add(1)

	if r.away.Load() {
		panic(http.ErrAbortHandler) // the connection breaks
	}

	switch user, password, _ := request.BasicAuth(); {
	case request.URL.Path == "/token" && user == registryUser && password == registryPassword:
		fmt.Fprintf(w, `{"token": %q, "expires_in": 300}`, token)
	case request.URL.Path == "/token":
		w.WriteHeader(http.StatusUnauthorized)
	case request.Header.Get("Authorization") == "Bearer "+token:
		r.content.ServeHTTP(w, request)
	default:
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="registry"`, r.URL))
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// repository is the repository of the releases.
func (r *ociRegistry) repository() string {
	return strings.TrimPrefix(r.URL, "http://") + "/team/releases"
}

// push follows docs/operator/releases.md: tar, and then `oras push`, called as a library.
func (r *ociRegistry) push(version string) {
	r.Helper()

	archive := filepath.Join(r.TempDir(), "release.tar.gz")
	pack := exec.CommandContext(r.Context(), "tar", "-czf", archive, "-C", filepath.Join("..", "..", "resources", "releases", version), ".")

	if said, err := pack.CombinedOutput(); err != nil {
		r.Fatalf("%v: %s", err, said)
	}

	packed, err := os.ReadFile(archive)
	if err != nil {
		r.Fatal(err)
	}

	here := memory.New()

	layer, err := oras.PushBytes(r.Context(), here, "application/vnd.oci.image.layer.v1.tar+gzip", packed)
	if err != nil {
		r.Fatal(err)
	}

	layer.Annotations = map[string]string{ocispec.AnnotationTitle: filepath.Base(archive)}

	manifest, err := oras.PackManifest(r.Context(), here, oras.PackManifestVersion1_1, "application/vnd.unknown.artifact.v1",
		oras.PackManifestOptions{Layers: []ocispec.Descriptor{layer}})
	if err != nil {
		r.Fatal(err)
	}

	if err := here.Tag(r.Context(), manifest, version); err != nil {
		r.Fatal(err)
	}

	there, err := remote.NewRepository(r.repository())
	if err != nil {
		r.Fatal(err)
	}

	there.PlainHTTP = true
	there.Client = &auth.Client{Credential: auth.StaticCredential(there.Reference.Registry, auth.Credential{
		Username: registryUser, Password: registryPassword,
	})}

	if _, err := oras.Copy(r.Context(), here, version, there, version, oras.DefaultCopyOptions); err != nil {
		r.Fatal(err)
	}
}

// kyma returns settings of a Provisioner that fetches its releases from the registry.
func (r *ociRegistry) kyma(cache string, password secret.String) provisioner.Kyma {
	return provisioner.Kyma{
		ReleasesRepository: r.repository(), ReleasesCachePath: cache,
		ReleasesUsername: registryUser, ReleasesPassword: password, ReleasesInsecure: true, ReleasesCalls: 4,
	}
}
