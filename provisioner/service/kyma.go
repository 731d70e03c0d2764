package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/installation/applier"
	"github.com/environment-broker/environment-broker/provisioner/installation/catalog"
	"github.com/environment-broker/environment-broker/provisioner/installation/manifest"
)

// Kyma is what can be installed on clusters: the releases of a folder, or of a repository.
type Kyma struct {
	ReleasesPath       string        `env:"RELEASES_PATH"       help:"folder of the releases of Kyma; without it and a repository, orders with kymaConfig are refused"`
	ReleasesRepository string        `env:"RELEASES_REPOSITORY" help:"OCI repository of the releases in place of a folder, like registry.example.com/team/releases"`
	ReleasesCachePath  string        `env:"RELEASES_CACHE_PATH" help:"folder in which releases of the repository are kept; needed with it"`
	ReleasesUsername   string        `env:"RELEASES_USERNAME"   help:"user of the repository; empty for none"`
	ReleasesPassword   secret.String `env:"RELEASES_PASSWORD"   help:"the user's password"`
	ReleasesInsecure   bool          `env:"RELEASES_INSECURE"   help:"speak HTTP without TLS to the repository"`
}

// open finds the releases. A broken one in the folder is told at the start; the repository is asked when a release is ordered, for the
// Provisioner starts while it is away. Without either Kyma is only removed from runtimes that have it.
func (k Kyma) open(ctx context.Context) (installation.Releases, installation.Installer, error) {
	if k.ReleasesPath == "" && k.ReleasesRepository == "" {
		return noReleases{}, applier.New(applier.Options{Manifests: noReleases{}, Now: time.Now}), nil
	}

	store, err := k.store()
	if err != nil {
		return nil, nil, err
	}

	releases := catalog.New(store)

	if k.ReleasesPath != "" {
		if err := releases.Check(ctx); err != nil {
			return nil, nil, fmt.Errorf("APP_KYMA_RELEASES_PATH: %w", err)
		}
	}

	return releases, applier.New(applier.Options{Manifests: releases, Now: time.Now}), nil
}

func (k Kyma) store() (catalog.Store, error) {
	switch {
	case k.ReleasesRepository == "":
		return catalog.Folder{FS: os.DirFS(k.ReleasesPath)}, nil
	case k.ReleasesPath != "":
		return nil, errors.New("APP_KYMA_RELEASES_REPOSITORY: releases come from it or from APP_KYMA_RELEASES_PATH, set one of them")
	case k.ReleasesCachePath == "":
		return nil, errors.New("APP_KYMA_RELEASES_CACHE_PATH: it has to name a folder for the releases of the repository")
	}

	registry, err := catalog.NewRegistry(catalog.RegistryOptions{
		Repository: k.ReleasesRepository, Cache: k.ReleasesCachePath,
		Username: k.ReleasesUsername, Password: k.ReleasesPassword, Insecure: k.ReleasesInsecure,
	})
	if err != nil {
		return nil, fmt.Errorf("APP_KYMA_RELEASES_REPOSITORY: %w", err)
	}

	return registry, nil
}

// noReleases has nothing to install.
type noReleases struct{}

// Plan implements installation.Releases.
func (noReleases) Plan(context.Context, model.KymaConfigInput) (installation.Plan, error) {
	return installation.Plan{}, errNoReleases()
}

// Manifests implements applier.Manifests.
func (noReleases) Manifests(context.Context, string) ([]manifest.File, error) {
	return nil, errNoReleases()
}

func errNoReleases() error {
	return failure.New(failure.Invalid,
		"kymaConfig: this Provisioner has no releases of Kyma: leave it out, or have APP_KYMA_RELEASES_PATH name their folder, or "+
			"APP_KYMA_RELEASES_REPOSITORY their repository")
}
