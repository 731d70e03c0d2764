package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/installation/applier"
	"github.com/environment-broker/environment-broker/provisioner/installation/catalog"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// releases are the releases of Kyma. A registry is an upstream system.
type releases struct {
	known     installation.Releases
	installer installation.Installer
	registry  *catalog.Registry
	system    *upstream.System
}

// open opens the releases. It checks those in a folder; a repository is read when a release is ordered, so that the Provisioner
// starts while the repository is unavailable. Without either, Kyma can only be uninstalled.
func (k Kyma) open(ctx context.Context) (releases, error) {
	switch {
	case k.ReleasesPath == "" && k.ReleasesRepository == "":
		return releases{known: noReleases{}, installer: applier.New(applier.Options{Manifests: noReleases{}, Now: time.Now})}, nil
	case k.ReleasesRepository != "":
		return k.openRepository()
	}

	found := catalog.New(catalog.Folder{FS: os.DirFS(k.ReleasesPath)})
	if err := found.Check(ctx); err != nil {
		return releases{}, fmt.Errorf("APP_KYMA_RELEASES_PATH: %w", err)
	}

	return releasesOf(found), nil
}

// openRepository returns the releases of an OCI repository. It calls nothing.
func (k Kyma) openRepository() (releases, error) {
	switch {
	case k.ReleasesPath != "":
		return releases{}, errors.New("APP_KYMA_RELEASES_REPOSITORY: set it or APP_KYMA_RELEASES_PATH, not both")
	case k.ReleasesCachePath == "":
		return releases{}, errors.New("APP_KYMA_RELEASES_CACHE_PATH: must name a folder for the releases of the repository")
	case k.ReleasesCalls < 1:
		return releases{}, errors.New("APP_KYMA_RELEASES_CALLS: must be at least 1")
	}

	system := upstream.New(upstream.Options{
		Name: "releases", Title: "the release registry", Component: failure.ComponentReleases,
		Calls: k.ReleasesCalls, Variable: "APP_KYMA_RELEASES_CALLS",
	})

	registry, err := catalog.NewRegistry(catalog.RegistryOptions{
		Repository: k.ReleasesRepository, Cache: k.ReleasesCachePath,
		Username: k.ReleasesUsername, Password: k.ReleasesPassword, Insecure: k.ReleasesInsecure, WrapTransport: system.Transport,
	})
	if err != nil {
		return releases{}, fmt.Errorf("APP_KYMA_RELEASES_REPOSITORY: %w", err)
	}

	found := releasesOf(catalog.New(registry))
	found.registry, found.system = registry, system

	return found, nil
}

func releasesOf(found *catalog.Catalog) releases {
	return releases{known: found, installer: applier.New(applier.Options{Manifests: found, Now: time.Now})}
}

// collectors returns the metrics of the guard.
func (r releases) collectors() []prometheus.Collector {
	if r.system == nil {
		return nil
	}

	return []prometheus.Collector{r.system}
}

// parts returns the background jobs.
func (r releases) parts(operationStore *operations.Store, wake func(), log logrus.FieldLogger) []lifecycle.Part {
	if r.system == nil {
		return nil
	}

	return []lifecycle.Part{{Name: "recovery of the release registry", Run: upstream.Recovery{
		System: r.system, Probe: r.registry.Probe, Operations: operationStore, Wake: wake, Clock: clock.RealClock{}, Log: log,
	}.Run}}
}
