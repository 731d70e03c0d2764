package service

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/internal/upstream/networks"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/installation/installer"
	"github.com/environment-broker/environment-broker/provisioner/installation/releases"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// Kyma configures the source of Kyma releases, which is a folder or an OCI repository, and how they are installed. If neither
// source is set, the Provisioner rejects orders with kymaConfig.
type Kyma struct {
	ReleasesPath       string        `env:"RELEASES_PATH"       help:"folder with the releases of Kyma; if neither a folder nor a repository is set, orders with kymaConfig are rejected"`
	ReleasesRepository string        `env:"RELEASES_REPOSITORY" help:"OCI repository of the releases instead of a folder, for example registry.example.com/team/releases"`
	ReleasesCachePath  string        `env:"RELEASES_CACHE_PATH" help:"folder that caches the releases of the repository; required if a repository is set"`
	ReleasesUsername   string        `env:"RELEASES_USERNAME"   help:"user name for the repository; empty for anonymous access"`
	ReleasesPassword   secret.String `env:"RELEASES_PASSWORD"   help:"password of the user"`
	ReleasesInsecure   bool          `env:"RELEASES_INSECURE"   help:"use HTTP without TLS for the repository"`
	ReleasesCalls      int           `env:"RELEASES_CALLS"      help:"maximum number of concurrent calls to the repository, per replica"`
	SourcesCachePath   string        `env:"SOURCES_CACHE_PATH"  help:"folder that caches the files of components with a sourceURL; if empty, orders with a sourceURL are rejected"`
	SourcesNetworks    []string      `env:"SOURCES_NETWORKS"    help:"non-public networks from which components with a sourceURL may be downloaded, as CIDR,…, for example 10.0.0.0/8; if empty, downloads are allowed only from public addresses"`
	SourcesCAFile      string        `env:"SOURCES_CA_FILE"     help:"file with the CA certificates for downloads from a sourceURL; if empty, the system's CA certificates are used"`

	Bundles Bundles `envPrefix:"BUNDLES_"`
}

// kymaReleases plans and installs the releases of Kyma. A registry is an upstream system with a circuit breaker.
type kymaReleases struct {
	known     installation.Releases
	manifests installation.Manifests
	direct    *installer.Installer
	// registry and system are nil if no repository is configured.
	registry *releases.Registry
	system   *upstream.System
}

// open opens the configured releases. It reads and checks a folder immediately. It does not call the registry of a repository:
// the Provisioner can start during an outage of the registry, and reads a release when an order first needs it.
func (k Kyma) open(ctx context.Context, pins releases.Pins) (kymaReleases, error) {
	switch {
	case k.ReleasesPath == "" && k.ReleasesRepository == "":
		return kymaReleases{
			known: noReleases{}, manifests: noReleases{}, direct: installer.New(installer.Options{Manifests: noReleases{}, Now: time.Now}),
		}, nil
	case k.ReleasesRepository != "":
		return k.openRepository(pins)
	}

	sources, err := k.openSources()
	if err != nil {
		return kymaReleases{}, err
	}

	found := releases.New(releases.Folder{FS: os.DirFS(k.ReleasesPath)}).WithSources(sources)
	if err := found.Check(ctx); err != nil {
		return kymaReleases{}, fmt.Errorf("APP_KYMA_RELEASES_PATH: %w", err)
	}

	return releasesOf(found), nil
}

// openRepository checks the settings of the repository and returns its releases. It does not call the registry.
func (k Kyma) openRepository(pins releases.Pins) (kymaReleases, error) {
	switch {
	case k.ReleasesPath != "":
		return kymaReleases{}, errors.New("APP_KYMA_RELEASES_REPOSITORY: set either this or APP_KYMA_RELEASES_PATH, not both")
	case k.ReleasesCachePath == "":
		return kymaReleases{}, errors.New("APP_KYMA_RELEASES_CACHE_PATH: must name a folder for the releases of the repository")
	case k.ReleasesCalls < 1:
		return kymaReleases{}, errors.New("APP_KYMA_RELEASES_CALLS: must be at least 1")
	}

	system := upstream.New(upstream.Options{
		Name: "releases", Title: "the release registry", Component: failure.ComponentReleases,
		Calls: k.ReleasesCalls, Variable: "APP_KYMA_RELEASES_CALLS",
	})

	registry, err := releases.NewRegistry(releases.RegistryOptions{
		Pins: pins, Now: time.Now, Repository: k.ReleasesRepository, Cache: k.ReleasesCachePath,
		Username: k.ReleasesUsername, Password: k.ReleasesPassword, Insecure: k.ReleasesInsecure, WrapTransport: system.Transport,
	})
	if err != nil {
		return kymaReleases{}, fmt.Errorf("APP_KYMA_RELEASES_REPOSITORY: %w", err)
	}

	sources, err := k.openSources()
	if err != nil {
		return kymaReleases{}, err
	}

	found := releasesOf(releases.New(registry).WithSources(sources))
	found.registry, found.system = registry, system

	return found, nil
}

// openSources checks the settings for components with a sourceURL, and removes old files from their cache. If no cache is
// configured, it returns nil, and orders must not contain a sourceURL. It does not send requests.
func (k Kyma) openSources() (*releases.Sources, error) {
	allowed, err := networks.Parse(k.SourcesNetworks)
	if err != nil {
		return nil, fmt.Errorf("APP_KYMA_SOURCES_NETWORKS: %w", err)
	}

	var authorities *x509.CertPool

	if k.SourcesCAFile != "" {
		content, err := os.ReadFile(k.SourcesCAFile)
		if err != nil {
			return nil, fmt.Errorf("APP_KYMA_SOURCES_CA_FILE: %w", err)
		}

		if authorities = x509.NewCertPool(); !authorities.AppendCertsFromPEM(content) {
			return nil, errors.New("APP_KYMA_SOURCES_CA_FILE: contains no certificate in PEM format")
		}
	}

	if k.SourcesCachePath == "" {
		return nil, nil //nolint:nilnil // no source is allowed
	}

	sources := releases.NewSources(releases.SourcesOptions{Cache: k.SourcesCachePath, Networks: allowed, Authorities: authorities})
	sources.Sweep()

	return sources, nil
}

// releasesOf returns kymaReleases in which the catalog plans the installations and provides the manifests.
func releasesOf(found *releases.Catalog) kymaReleases {
	return kymaReleases{known: found, manifests: found, direct: installer.New(installer.Options{Manifests: found, Now: time.Now})}
}

// noReleases rejects every order for Kyma in a Provisioner without releases. Such a Provisioner can still uninstall Kyma from
// existing runtimes, because the applier reads the list of installed objects from the cluster.
type noReleases struct{}

// Plan implements installation.Releases.
func (noReleases) Plan(context.Context, spec.Kyma) (installation.Plan, error) {
	return installation.Plan{}, errNoReleases()
}

// Manifests implements installation.Manifests.
func (noReleases) Manifests(context.Context, string) ([]installation.ManifestFile, error) {
	return nil, errNoReleases()
}

func errNoReleases() error {
	return failure.New(failure.Invalid,
		"kymaConfig: this Provisioner has no releases of Kyma: omit kymaConfig, or ask an operator to set APP_KYMA_RELEASES_PATH or APP_KYMA_RELEASES_REPOSITORY")
}
