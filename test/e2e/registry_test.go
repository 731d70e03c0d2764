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

// ociRegistry is an OCI registry that requires a token and issues tokens to a user with a password.
type ociRegistry struct {
	*testing.T
	*httptest.Server

	content http.Handler
	// unavailable makes the registry close every connection.
	unavailable atomic.Bool
	// calls counts all requests, including those while the registry is unavailable.
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

	if r.unavailable.Load() {
		panic(http.ErrAbortHandler) // closes the connection
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

func (r *ociRegistry) repository() string {
	return strings.TrimPrefix(r.URL, "http://") + "/team/releases"
}

// push publishes a release as docs/operator/releases.md describes: with tar and `oras push`, which it calls as a library.
func (r *ociRegistry) push(version string) {
	r.Helper()

	archive := filepath.Join(r.TempDir(), "release.tar.gz")
	pack := exec.CommandContext(r.Context(), "tar", "-czf", archive, "-C", filepath.Join("..", "..", "resources", "releases", version), ".")

	if output, err := pack.CombinedOutput(); err != nil {
		r.Fatalf("%v: %s", err, output)
	}

	packed, err := os.ReadFile(archive)
	if err != nil {
		r.Fatal(err)
	}

	local := memory.New()

	layer, err := oras.PushBytes(r.Context(), local, "application/vnd.oci.image.layer.v1.tar+gzip", packed)
	if err != nil {
		r.Fatal(err)
	}

	layer.Annotations = map[string]string{ocispec.AnnotationTitle: filepath.Base(archive)}

	manifest, err := oras.PackManifest(r.Context(), local, oras.PackManifestVersion1_1, "application/vnd.unknown.artifact.v1",
		oras.PackManifestOptions{Layers: []ocispec.Descriptor{layer}})
	if err != nil {
		r.Fatal(err)
	}

	if err := local.Tag(r.Context(), manifest, version); err != nil {
		r.Fatal(err)
	}

	target, err := remote.NewRepository(r.repository())
	if err != nil {
		r.Fatal(err)
	}

	target.PlainHTTP = true
	target.Client = &auth.Client{Credential: auth.StaticCredential(target.Reference.Registry, auth.Credential{
		Username: registryUser, Password: registryPassword,
	})}

	if _, err := oras.Copy(r.Context(), local, version, target, version, oras.DefaultCopyOptions); err != nil {
		r.Fatal(err)
	}
}

// kyma returns the settings with which a Provisioner fetches its releases from the registry.
func (r *ociRegistry) kyma(cache string, password secret.String) provisioner.Kyma {
	return provisioner.Kyma{
		ReleasesRepository: r.repository(), ReleasesCachePath: cache,
		ReleasesUsername: registryUser, ReleasesPassword: password, ReleasesInsecure: true, ReleasesCalls: 4,
	}
}
