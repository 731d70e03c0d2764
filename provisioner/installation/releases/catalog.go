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

// Store keeps releases, each in a folder of its own.
type Store interface {
	// Open returns the folder of a release; fs.ErrNotExist if there is no such version. Errors of package failure are passed on.
	Open(ctx context.Context, version string) (fs.FS, error)
	// Versions lists the known releases; a store may not know all.
	Versions(ctx context.Context) ([]string, error)
}

// Catalog reads releases when they are first used and caches them: the content of a version never changes.
type Catalog struct {
	store Store

	mu       sync.Mutex
	releases map[string]*release
}

var _ installation.Releases = (*Catalog)(nil)

// New returns a catalog of the releases in the store.
func New(store Store) *Catalog { return &Catalog{store: store, releases: map[string]*release{}} }

// Check reads all releases that the store lists, so that a service reports an invalid one when it starts.
func (c *Catalog) Check(ctx context.Context) error {
	versions, err := c.store.Versions(ctx)
	if err != nil {
		return fmt.Errorf("list the releases: %w", err)
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
	return found.plan(order)
}

// Manifests returns the files of a component of a plan. Besides the values of the component they refer to the key namespace.
func (c *Catalog) Manifests(ctx context.Context, source string) ([]installation.ManifestFile, error) {
	version, name, _ := strings.Cut(source, separator)
	found, err := c.release(ctx, version)
	if err != nil {
		return nil, c.explain(ctx, version, err)
	}
	component := found.component(name)
	if component == nil {
		return nil, failure.New(failure.Permanent, "release %s has no component %q any more", version, name).
			WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
	}
	return component.files, nil
}

// separator occurs in no version and in no name.
const separator = "/"

func sourceOf(version, component string) string { return version + separator + component }

// versions matches valid versions: they are safe as names of folders and tags.
var versions = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func (c *Catalog) release(ctx context.Context, version string) (*release, error) {
	if known := c.known(version); known != nil {
		return known, nil
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
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releases[version] = found
	return found, nil
}

func (c *Catalog) known(version string) *release {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.releases[version]
}

// brokenError says that a release exists but is invalid.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

func (c *Catalog) explain(ctx context.Context, version string, err error) error {
	if _, broken := errors.AsType[*brokenError](err); broken {
		return failure.Wrap(failure.Permanent, err, "release %s cannot be used: it is invalid; the log has the reason for its maintainer", version).
			WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
	}
	if known, ok := errors.AsType[*failure.Error](err); ok {
		return known
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return failure.Wrap(failure.Transient, err, "release %s cannot be read now", version).
			WithReason(failure.ReasonSystemAway, failure.ComponentProvisioner)
	}
	known, listing := c.store.Versions(ctx)
	if listing != nil || len(known) == 0 {
		return invalid("kymaConfig.version: there is no release %q", version)
	}
	slices.Sort(known)
	return invalid("kymaConfig.version: there is no release %q; there are %s", version, strings.Join(known, ", "))
}

// Folder is a Store: a folder with one subfolder per release, named like the version. Releases may be added at any time.
type Folder struct{ FS fs.FS }

// Open implements Store.
func (f Folder) Open(_ context.Context, version string) (fs.FS, error) {
	if _, err := fs.Stat(f.FS, version); err != nil {
		return nil, fmt.Errorf("open release %s: %w", version, err)
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
