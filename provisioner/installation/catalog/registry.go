package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
)

const (
	// largestManifest and largestLayer bound what is fetched, in bytes.
	largestManifest = 4 << 20
	largestLayer    = 64 << 20

	registryTimeout = time.Minute
)

// RegistryOptions say where releases are.
type RegistryOptions struct {
	// Repository is a repository of an OCI registry: registry.example.com/team/releases.
	Repository string
	// Cache is a folder of the Provisioner's own. What it holds is not fetched again.
	Cache    string
	Username string
	Password secret.String
	// Insecure speaks HTTP without TLS.
	Insecure bool
	// WrapTransport, if set, wraps the transport of all requests.
	WrapTransport func(http.RoundTripper) http.RoundTripper
}

// Registry is a Store: a repository in which each release is an artifact with one layer, a tar.gz of its folder, and the version as tag.
type Registry struct {
	repository *remote.Repository
	cache      string
}

// NewRegistry returns the store. It calls nobody yet.
func NewRegistry(options RegistryOptions) (*Registry, error) {
	repository, err := remote.NewRepository(options.Repository)
	if err != nil {
		return nil, fmt.Errorf("%q is no repository: %w", options.Repository, err)
	}
	repository.PlainHTTP = options.Insecure
	transport := http.DefaultTransport
	if options.WrapTransport != nil {
		transport = options.WrapTransport(transport)
	}
	// It does not try again by itself: the engine does, and holds no worker meanwhile.
	client := &auth.Client{Client: &http.Client{Transport: transport, Timeout: registryTimeout}, Cache: auth.NewCache()}
	if options.Username != "" {
		client.Credential = auth.StaticCredential(repository.Reference.Registry, auth.Credential{
			Username: options.Username, Password: options.Password.Reveal(),
		})
	}
	repository.Client = client
	return &Registry{repository: repository, cache: options.Cache}, nil
}

// Probe asks what any registry can answer.
func (r *Registry) Probe(ctx context.Context) error {
	registry := remote.Registry{RepositoryOptions: remote.RepositoryOptions{
		Client: r.repository.Client, Reference: r.repository.Reference, PlainHTTP: r.repository.PlainHTTP,
	}}
	return registry.Ping(ctx)
}

// Versions implements Store.
func (r *Registry) Versions(ctx context.Context) ([]string, error) {
	var versions []string
	err := r.repository.Tags(ctx, "", func(tags []string) error {
		versions = append(versions, tags...)
		return nil
	})
	return versions, err
}

// Open implements Store. A release that was fetched once is taken from the cache, also when its tag has moved since.
func (r *Registry) Open(ctx context.Context, version string) (fs.FS, error) {
	folder := r.folder(version)
	if _, err := os.Stat(folder); err == nil {
		return rooted(folder)
	}
	layer, err := r.layer(ctx, version)
	if err != nil {
		return nil, err
	}
	if err := r.fetch(ctx, layer, version); err != nil {
		return nil, fmt.Errorf("fetch release %s: %w", version, err)
	}
	return rooted(folder)
}

// folder is where the cache has a release.
func (r *Registry) folder(version string) string { return filepath.Join(r.cache, version) }

// layer finds the one layer of a release.
func (r *Registry) layer(ctx context.Context, version string) (ocispec.Descriptor, error) {
	found, err := r.repository.Resolve(ctx, version)
	if errors.Is(err, errdef.ErrNotFound) {
		return found, fs.ErrNotExist
	}
	if err != nil {
		return found, refused(version, err)
	}
	if found.Size > largestManifest {
		return found, &brokenError{fmt.Errorf("release %s has a manifest of %d bytes", version, found.Size)}
	}
	text, err := content.FetchAll(ctx, r.repository, found)
	if err != nil {
		return found, refused(version, err)
	}
	manifest := ocispec.Manifest{}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return found, &brokenError{fmt.Errorf("the manifest of release %s cannot be read: %w", version, err)}
	}
	if len(manifest.Layers) != 1 {
		return found, &brokenError{fmt.Errorf("release %s is no artifact with one layer: it has %d", version, len(manifest.Layers))}
	}
	layer := manifest.Layers[0]
	switch {
	case !strings.HasSuffix(layer.MediaType, "tar+gzip") && !strings.HasSuffix(layer.MediaType, "tar.gzip"):
		return layer, &brokenError{fmt.Errorf("release %s is no tar.gz of a folder: it is %q", version, layer.MediaType)}
	case layer.Size > largestLayer:
		return layer, &brokenError{fmt.Errorf("release %s has %d bytes, at most %d are allowed", version, layer.Size, largestLayer)}
	}
	return layer, nil
}

// fetch unpacks the layer beside the release's folder, and puts it there when all of it is there and is what its digest says.
func (r *Registry) fetch(ctx context.Context, layer ocispec.Descriptor, version string) error {
	if err := os.MkdirAll(r.cache, 0o750); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(r.cache, ".partial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(partial) //nolint:errcheck // it is gone when all went well
	body, err := r.repository.Fetch(ctx, layer)
	if err != nil {
		return refused(version, err)
	}
	defer body.Close() //nolint:errcheck // it was read
	verified := content.NewVerifyReader(body, layer)
	unpacked := unpack(verified, partial)
	// What does not have its digest was damaged on the way, whatever the unpacking says.
	if _, err := io.Copy(io.Discard, verified); err != nil {
		return refused(version, err)
	}
	if err := verified.Verify(); err != nil {
		return refused(version, err)
	}
	if unpacked != nil {
		return unpacked
	}
	folder := r.folder(version)
	err = os.Rename(partial, folder)
	if _, there := os.Stat(folder); there == nil {
		return nil // another one was faster with the same
	}
	return err
}

// refused says why the registry does not give a release. What it says itself is for the log: it may name addresses. A password that is
// wrong is repaired some time, and what waits for the release goes on then.
func refused(version string, err error) error {
	if known, ok := errors.AsType[*failure.Error](err); ok {
		return failure.Wrap(known.Kind, err, "release %s cannot be fetched: %s", version, known.Text).
			WithReason(known.Reason, known.Component)
	}
	answer, answered := errors.AsType[*errcode.ErrorResponse](err)
	if errors.Is(err, auth.ErrBasicCredentialNotFound) ||
		answered && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden) {
		return failure.Wrap(failure.Transient, err, "release %s cannot be fetched: the registry of the releases refuses our credentials: "+
			"an operator has to repair them, see APP_KYMA_RELEASES_USERNAME and APP_KYMA_RELEASES_PASSWORD", version).
			WithReason("Unauthorized", failure.ComponentReleases)
	}
	return failure.Wrap(failure.Transient, err, "release %s cannot be fetched: the registry of the releases does not answer as it should", version).
		WithReason(failure.ReasonSystemAway, failure.ComponentReleases)
}

// rooted returns the folder of release.yaml: the folder itself, or the only one in it, as tar makes it of a folder by its name.
func rooted(folder string) (fs.FS, error) {
	root := os.DirFS(folder)
	entries, err := fs.ReadDir(root, ".")
	if err != nil {
		return nil, err
	}
	if len(entries) == 1 && entries[0].IsDir() {
		return fs.Sub(root, entries[0].Name())
	}
	return root, nil
}
