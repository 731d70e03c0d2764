package releases

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// Store provides the files of releases.
type Store interface {
	// Open returns the folder of a release, or an fs.ErrNotExist for an unknown version. Catalog returns a failure.Error
	// unchanged, and treats any other error as a temporary outage of the store.
	Open(ctx context.Context, version string) (fs.FS, error)
	// Versions lists the known versions, in any order. The list may be incomplete: Open decides whether a version exists.
	Versions(ctx context.Context) ([]string, error)
}

// Catalog implements installation.Releases and installation.Manifests. It reads a release at its first use and then caches it in
// memory. It is safe for concurrent use.
type Catalog struct {
	store Store
	// sources is nil if components come only from releases.
	sources *Sources
	// cache maps a version to its *release. Concurrent requests may read the same release twice, with the same result.
	cache sync.Map
}

var _ installation.Releases = (*Catalog)(nil)

// New returns a catalog of the releases in the store.
func New(store Store) *Catalog { return &Catalog{store: store} }

// WithSources allows orders to name components from other sources, and returns the catalog. If sources is nil, such orders are
// rejected.
func (c *Catalog) WithSources(sources *Sources) *Catalog {
	c.sources = sources

	return c
}

// Check reads all releases that the store lists. A service calls it to report invalid releases at startup instead of during an
// operation.
func (c *Catalog) Check(ctx context.Context) error {
	versions, err := c.store.Versions(ctx)
	if err != nil {
		return fmt.Errorf("listing the releases: %w", err)
	}
	var problems []error
	for _, version := range versions {
		_, err := c.release(ctx, version)
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// Plan implements installation.Releases.
func (c *Catalog) Plan(ctx context.Context, order spec.Kyma) (installation.Plan, error) {
	found, err := c.release(ctx, order.Version)
	if err != nil {
		return installation.Plan{}, c.explain(ctx, order.Version, err)
	}
	return found.plan(order, c.sources != nil)
}

// Manifests implements installation.Manifests. Each placeholder in the files refers to a key of the component's values or to
// installation.NamespaceKey.
func (c *Catalog) Manifests(ctx context.Context, source string) ([]installation.ManifestFile, error) {
	if strings.HasPrefix(source, sourceScheme) {
		return c.outside(ctx, source)
	}
	version, name, _ := strings.Cut(source, separator)
	found, err := c.release(ctx, version)
	if err != nil {
		return nil, c.explain(ctx, version, err)
	}
	component := found.component(name)
	if component == nil {
		return nil, failure.New(failure.Permanent, "release %s no longer has the component %q", version, name).
			WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
	}
	return component.files, nil
}

// outside returns the manifests of a component with a sourceURL.
func (c *Catalog) outside(ctx context.Context, address string) ([]installation.ManifestFile, error) {
	if c.sources == nil {
		return nil, failure.New(failure.Permanent, "a component has a sourceURL, but %s", noSources).
			WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
	}
	from, err := parseSource(address)
	if err != nil {
		return nil, failure.New(failure.Permanent, "the sourceURL of a component %s", err).
			WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
	}
	return c.sources.files(ctx, from)
}

// separator separates the version and the component in Component.Source. Neither can contain it.
const separator = "/"

// sourceOf returns the value of Component.Source for a component of a release.
func sourceOf(version, component string) string { return version + separator + component }

// versions matches valid versions, which are safe as folder names and OCI tags, and cannot point outside the folder of a store.
var versions = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// release returns the release from the cache or from the store. Errors are not cached: a missing release may be added later.
func (c *Catalog) release(ctx context.Context, version string) (*release, error) {
	if cached, ok := c.cache.Load(version); ok {
		found, _ := cached.(*release)
		return found, nil
	}
	if !versions.MatchString(version) {
		return nil, fs.ErrNotExist
	}
	folder, err := c.store.Open(ctx, version)
	if err != nil {
		return nil, err
	}
	found, err := read(folder, version)
	if err != nil {
		return nil, &brokenError{err}
	}
	c.cache.Store(version, found)
	return found, nil
}

// brokenError marks the errors about an invalid release, as opposed to an unavailable store.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

// explain converts an error from the release method to a failure.Error. Only an unknown version is a mistake in the order; the
// error then lists the versions in the store. The problems of an invalid release concern only its maintainer, so the message
// omits them. They are in the cause of the error, which is logged.
func (c *Catalog) explain(ctx context.Context, version string, err error) error {
	if _, broken := errors.AsType[*brokenError](err); broken {
		return failure.Wrap(failure.Permanent, err, "release %s is invalid and cannot be used: operators can find the problems in the "+
			"Provisioner's log", version).
			WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
	}
	if typed, ok := errors.AsType[*failure.Error](err); ok {
		return typed
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return failure.Wrap(failure.Transient, err, "release %s is temporarily unavailable", version).
			WithReason(failure.ReasonSystemUnavailable, failure.ComponentProvisioner)
	}
	listed, listing := c.store.Versions(ctx)
	if listing != nil || len(listed) == 0 {
		return invalid("kymaConfig.version: there is no release %q", version)
	}
	slices.Sort(listed)
	return invalid("kymaConfig.version: there is no release %q; the releases are %s", version, strings.Join(listed, ", "))
}

// Folder is a Store. Each subfolder contains one release and is named after its version. Releases may be added while the service
// runs.
type Folder struct{ FS fs.FS }

// Open implements Store.
func (f Folder) Open(_ context.Context, version string) (fs.FS, error) {
	if _, err := fs.Stat(f.FS, version); err != nil {
		return nil, fmt.Errorf("opening release %s: %w", version, err)
	}
	return fs.Sub(f.FS, version)
}

// Versions implements Store.
func (f Folder) Versions(context.Context) ([]string, error) {
	entries, err := fs.ReadDir(f.FS, ".")
	if err != nil {
		return nil, err
	}
	var versions []string
	for _, entry := range entries {
		if entry.IsDir() {
			versions = append(versions, entry.Name())
		}
	}
	return versions, nil
}
