package releases

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
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
	// largestManifest and largestLayer bound downloads, in bytes.
	largestManifest = 4 << 20
	largestLayer    = 64 << 20

	registryTimeout = time.Minute
)

// RegistryOptions configure a Registry.
type RegistryOptions struct {
	// Repository is a repository of an OCI registry: registry.example.com/team/releases.
	Repository string
	// Cache is a folder that belongs to the Provisioner. Releases in it are not fetched again.
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

// NewRegistry returns the store. It makes no call.
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
	// No retries here: the engine retries without occupying a worker.
	client := &auth.Client{Client: &http.Client{Transport: transport, Timeout: registryTimeout}, Cache: auth.NewCache()}
	if options.Username != "" {
		client.Credential = auth.StaticCredential(repository.Reference.Registry, auth.Credential{
			Username: options.Username, Password: options.Password.Reveal(),
		})
	}
	repository.Client = client
	return &Registry{repository: repository, cache: options.Cache}, nil
}

// Probe makes the call that every registry answers.
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

// Open implements Store. A cached release is used even if its tag has moved since.
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

// folder returns the path of a release in the cache.
func (r *Registry) folder(version string) string { return filepath.Join(r.cache, version) }

// layer returns the descriptor of the only layer of a release.
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
		return found, &brokenError{fmt.Errorf("release %s is not an artifact with one layer: it has %d", version, len(manifest.Layers))}
	}
	layer := manifest.Layers[0]
	switch {
	case !strings.HasSuffix(layer.MediaType, "tar+gzip") && !strings.HasSuffix(layer.MediaType, "tar.gzip"):
		return layer, &brokenError{fmt.Errorf("release %s is not a tar.gz of a folder but %q", version, layer.MediaType)}
	case layer.Size > largestLayer:
		return layer, &brokenError{fmt.Errorf("release %s has %d bytes, at most %d are allowed", version, layer.Size, largestLayer)}
	}
	return layer, nil
}

// fetch unpacks the layer next to the folder of the release and renames it once it is complete and matches its digest.
func (r *Registry) fetch(ctx context.Context, layer ocispec.Descriptor, version string) error {
	if err := os.MkdirAll(r.cache, 0o750); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(r.cache, ".partial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(partial) //nolint:errcheck // renamed after success
	body, err := r.repository.Fetch(ctx, layer)
	if err != nil {
		return refused(version, err)
	}
	defer body.Close() //nolint:errcheck // it was read
	verified := content.NewVerifyReader(body, layer)
	unpacked := unpack(verified, partial)
	// A wrong digest means damage in transit, whatever unpacking reports.
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
		return nil // another replica has fetched the same
	}
	return err
}

// refused explains why a release cannot be fetched. The message of the registry goes to the log only: it may name addresses. Wrong
// credentials are transient: operations continue when an operator has corrected them.
func refused(version string, err error) error {
	if known, ok := errors.AsType[*failure.Error](err); ok {
		return failure.Wrap(known.Kind, err, "release %s cannot be fetched: %s", version, known.Text).
			WithReason(known.Reason, known.Component)
	}
	answer, answered := errors.AsType[*errcode.ErrorResponse](err)
	if errors.Is(err, auth.ErrBasicCredentialNotFound) ||
		answered && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden) {
		return failure.Wrap(failure.Transient, err, "release %s cannot be fetched: the release registry rejects our credentials: "+
			"an operator must correct them, see APP_KYMA_RELEASES_USERNAME and APP_KYMA_RELEASES_PASSWORD", version).
			WithReason("Unauthorized", failure.ComponentReleases)
	}
	return failure.Wrap(failure.Transient, err, "release %s cannot be fetched: the release registry does not respond correctly", version).
		WithReason(failure.ReasonSystemAway, failure.ComponentReleases)
}

// rooted returns the folder of release.yaml: the folder itself, or its only subfolder, as an archive of a folder has it.
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
	// mostFiles and mostBytes bound the size of an unpacked release.
	mostFiles = 10_000
	mostBytes = 256 << 20
)

// unpack writes the files of a tar.gz below the folder. Anything but files and folders is an error, as is a path that leaves the folder.
func unpack(from io.Reader, folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing was written through the folder itself
	packed, err := gzip.NewReader(from)
	if err != nil {
		return &brokenError{fmt.Errorf("not a gzip file: %w", err)}
	}
	files, left := tar.NewReader(packed), int64(mostBytes)
	for count := 0; ; count++ {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &brokenError{fmt.Errorf("not a tar archive: %w", err)}
		}
		name := path.Clean(strings.TrimSuffix(header.Name, "/"))
		left -= header.Size
		switch {
		case !fs.ValidPath(name):
			return &brokenError{fmt.Errorf("the path %q leaves the folder", header.Name)}
		case count >= mostFiles || left < 0:
			return &brokenError{fmt.Errorf("it has more than %d files or %d bytes", mostFiles, mostBytes)}
		case header.Typeflag == tar.TypeDir:
			err = root.MkdirAll(name, 0o750)
		case header.Typeflag == tar.TypeReg:
			err = write(root, name, files)
		default:
			return &brokenError{fmt.Errorf("%q is neither a file nor a folder", header.Name)}
		}
		if err != nil {
			return err
		}
	}
}

func write(root *os.Root, name string, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o750); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
