package releases

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

	"github.com/environment-broker/environment-broker/bundle/archive"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// largestManifest and largestLayer bound the sizes of downloads, in bytes.
	largestManifest = 4 << 20
	largestLayer    = 64 << 20

	// registryTimeout bounds each HTTP request to the registry, including the download of a layer.
	registryTimeout = time.Minute
)

// Pins record the digest of each release, once for all replicas. runtimes.Store implements it.
type Pins interface {
	// ReleaseDigest returns the recorded digest, or storage.ErrNotFound.
	ReleaseDigest(ctx context.Context, repository, version string) (string, error)
	// PinRelease records a digest, unless one is already recorded, and returns the recorded digest.
	PinRelease(ctx context.Context, repository, version, digest string, at time.Time) (string, error)
}

// RegistryOptions configure a Registry.
type RegistryOptions struct {
	Pins Pins
	// Now returns the time that is recorded with a digest.
	Now func() time.Time
	// Repository is the repository with the releases, without a scheme: registry.example.com/team/releases.
	Repository string
	// Cache is a folder for downloaded releases. Replicas can share it. Releases in the folder are not downloaded again.
	Cache string
	// Username and Password are the basic authentication credentials; an empty Username means anonymous access.
	Username string
	Password secret.String
	// Insecure makes the Registry use HTTP without TLS.
	Insecure bool
	// WrapTransport wraps the transport of all requests, for example with a circuit breaker. It may be nil.
	WrapTransport func(http.RoundTripper) http.RoundTripper
}

// Registry is a Store of releases in an OCI repository. Each release is an artifact whose tag is the version. The artifact's
// only layer is a tar.gz of the release's folder. Registry is safe for concurrent use, and several processes can share a cache.
type Registry struct {
	repository *remote.Repository
	name       string
	cache      string
	pins       Pins
	now        func() time.Time
}

// NewRegistry returns the store. It does not call the registry, which may be unavailable. It fails if the repository name is
// invalid.
func NewRegistry(options RegistryOptions) (*Registry, error) {
	repository, err := remote.NewRepository(options.Repository)
	if err != nil {
		return nil, fmt.Errorf("%q is not a repository: %w", options.Repository, err)
	}
	repository.PlainHTTP = options.Insecure
	transport := http.DefaultTransport
	if options.WrapTransport != nil {
		transport = options.WrapTransport(transport)
	}
	// The client does not retry. The engine retries later, and the worker is free in the meantime.
	client := &auth.Client{Client: &http.Client{Transport: transport, Timeout: registryTimeout}, Cache: auth.NewCache()}
	if options.Username != "" {
		client.Credential = auth.StaticCredential(repository.Reference.Registry, auth.Credential{
			Username: options.Username, Password: options.Password.Reveal(),
		})
	}
	repository.Client = client
	return &Registry{repository: repository, name: options.Repository, cache: options.Cache, pins: options.Pins, now: options.Now}, nil
}

// Probe calls an endpoint that every registry has. The circuit breaker calls it to detect recovery.
func (r *Registry) Probe(ctx context.Context) error {
	registry := remote.Registry{RepositoryOptions: remote.RepositoryOptions{
		Client: r.repository.Client, Reference: r.repository.Reference, PlainHTTP: r.repository.PlainHTTP,
	}}
	return registry.Ping(ctx)
}

// Versions implements Store. It returns all tags of the repository.
func (r *Registry) Versions(ctx context.Context) ([]string, error) {
	var versions []string
	err := r.repository.Tags(ctx, "", func(tags []string) error {
		versions = append(versions, tags...)
		return nil
	})
	return versions, err
}

// Open implements Store. The first replica that opens a release records the digest of its artifact, and all replicas use this artifact
// from then on, even if the tag moves. The content of a version thus never changes. Open downloads an artifact that is not in the cache.
func (r *Registry) Open(ctx context.Context, version string) (fs.FS, error) {
	pinned, err := r.pin(ctx, version)
	if err != nil {
		return nil, err
	}
	folder := r.folder(pinned)
	if _, err := os.Stat(folder); err == nil {
		return rooted(folder)
	}
	layer, err := r.layer(ctx, version, pinned)
	if err != nil {
		return nil, err
	}
	if err := r.fetch(ctx, layer, version, folder); err != nil {
		return nil, fmt.Errorf("fetching release %s: %w", version, err)
	}
	return rooted(folder)
}

// folder returns the cache path of the artifact with the given digest.
func (r *Registry) folder(pinned string) string {
	return filepath.Join(r.cache, strings.ReplaceAll(pinned, ":", "-"))
}

// pin returns the recorded digest of a release. If none is recorded, it resolves the tag and records the digest.
func (r *Registry) pin(ctx context.Context, version string) (string, error) {
	known, err := r.pins.ReleaseDigest(ctx, r.name, version)
	if errors.Is(err, storage.ErrNotFound) {
		found, err := r.repository.Resolve(ctx, version)
		if errors.Is(err, errdef.ErrNotFound) {
			return "", fs.ErrNotExist
		}
		if err != nil {
			return "", unavailable(version, err)
		}
		known, err = r.pins.PinRelease(ctx, r.name, version, found.Digest.String(), r.now())
		if err == nil {
			return known, nil
		}
		return "", notPinned(version, err)
	}
	if err != nil {
		return "", notPinned(version, err)
	}
	return known, nil
}

// notPinned returns the transient error for a digest that could not be read from or recorded in the database.
func notPinned(version string, err error) error {
	return failure.Wrap(failure.Transient, err, "the digest of release %s could not be read or recorded", version).
		WithReason(failure.ReasonInternal, failure.ComponentProvisionerStorage)
}

// layer returns the descriptor of the release's layer, after checking its type and size. It returns a brokenError for an artifact
// with a different structure.
func (r *Registry) layer(ctx context.Context, version, pinned string) (ocispec.Descriptor, error) {
	found, err := r.repository.Resolve(ctx, pinned)
	if errors.Is(err, errdef.ErrNotFound) {
		return found, failure.Wrap(failure.Transient, err, "the registry no longer has release %s with the digest %s: an operator must push "+
			"the same artifact again",
			version, pinned).WithReason("NotFound", failure.ComponentReleases)
	}
	if err != nil {
		return found, unavailable(version, err)
	}
	if found.Size > largestManifest {
		return found, &brokenError{fmt.Errorf("the manifest of release %s is larger than %d MiB", version, largestManifest>>20)}
	}
	text, err := content.FetchAll(ctx, r.repository, found)
	if err != nil {
		return found, unavailable(version, err)
	}
	manifest := ocispec.Manifest{}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return found, &brokenError{fmt.Errorf("the manifest of release %s cannot be read: %w", version, err)}
	}
	if len(manifest.Layers) != 1 {
		return found, &brokenError{fmt.Errorf("release %s must be an artifact with one layer, but has %d layers", version, len(manifest.Layers))}
	}
	layer := manifest.Layers[0]
	switch {
	case !strings.HasSuffix(layer.MediaType, "tar+gzip") && !strings.HasSuffix(layer.MediaType, "tar.gzip"):
		return layer, &brokenError{fmt.Errorf("release %s must be a tar.gz of a folder, but its media type is %q", version, layer.MediaType)}
	case layer.Size > largestLayer:
		return layer, &brokenError{fmt.Errorf("release %s is larger than %d MiB", version, largestLayer>>20)}
	}
	return layer, nil
}

// fetch downloads the layer. It unpacks the layer into a temporary folder, verifies the digest, and then renames the folder, so a
// crash or a damaged download never leaves an incomplete release in the cache.
func (r *Registry) fetch(ctx context.Context, layer ocispec.Descriptor, version, folder string) error {
	if err := os.MkdirAll(r.cache, 0o750); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(r.cache, ".partial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(partial) //nolint:errcheck // After a success, the folder has been renamed.
	body, err := r.repository.Fetch(ctx, layer)
	if err != nil {
		return unavailable(version, err)
	}
	defer body.Close() //nolint:errcheck // The body has been read.
	verified := content.NewVerifyReader(body, layer)
	unpacked := unpack(ctx, verified, partial, maxBytes)
	// Verify the digest first: a damaged download must not be reported as an invalid release.
	if _, err := io.Copy(io.Discard, verified); err != nil {
		return unavailable(version, err)
	}
	if err := verified.Verify(); err != nil {
		return unavailable(version, err)
	}
	if unpacked != nil {
		return unpacked
	}
	err = os.Rename(partial, folder)
	if _, there := os.Stat(folder); there == nil {
		return nil // Another replica has fetched the same release.
	}
	return err
}

// unavailable converts an error from the registry to a transient failure.Error. The message of the registry goes only to the log,
// because it may include addresses. Rejected credentials are transient too: operations continue after an operator has corrected
// them.
func unavailable(version string, err error) error {
	// The concurrency limit and the circuit breaker reject requests with a failure.Error.
	if typed, ok := errors.AsType[*failure.Error](err); ok {
		return failure.Wrap(typed.Kind, err, "release %s cannot be fetched: %s", version, typed.Text).
			WithReason(typed.Reason, typed.Component)
	}
	answer, answered := errors.AsType[*errcode.ErrorResponse](err)
	if errors.Is(err, auth.ErrBasicCredentialNotFound) ||
		answered && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden) {
		return failure.Wrap(failure.Transient, err, "release %s cannot be fetched: the release registry rejected the credentials. "+
			"An operator must correct APP_KYMA_RELEASES_USERNAME and APP_KYMA_RELEASES_PASSWORD", version).
			WithReason("Unauthorized", failure.ComponentReleases)
	}
	return failure.Wrap(failure.Transient, err, "release %s cannot be fetched: the release registry does not respond correctly", version).
		WithReason(failure.ReasonSystemUnavailable, failure.ComponentReleases)
}

// rooted returns the folder with release.yaml: the given folder, or its only subfolder if the archive contains the release's
// folder itself.
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

const (
	// maxFiles and maxBytes limit the size of an unpacked release, because a small archive can contain any number of files and
	// bytes.
	maxFiles = 10_000
	maxBytes = 256 << 20
)

// unpack writes the files of a tar.gz into the folder. It fails if they have more than limit bytes in total. It rejects links,
// other special files, and paths outside the folder.
func unpack(ctx context.Context, from io.Reader, folder string, limit int64) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // Nothing is written through the folder itself.
	err = archive.Extract(ctx, from, root, archive.Limits{CompressedBytes: largestLayer, Bytes: limit, Files: maxFiles, NoLinks: true})
	if _, invalid := errors.AsType[*archive.InvalidError](err); invalid {
		return &brokenError{err}
	}
	return err
}
