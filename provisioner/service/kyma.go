package service

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/installation/applier"
	"github.com/environment-broker/environment-broker/provisioner/installation/catalog"
	"github.com/environment-broker/environment-broker/provisioner/installation/manifest"
)

// Kyma is what can be installed on clusters.
type Kyma struct {
	ReleasesPath string `env:"RELEASES_PATH" help:"folder of the releases of Kyma; empty for none, then orders with kymaConfig are refused"`
}

// open reads all releases, so that a broken one is told at the start. Without a folder Kyma is only removed from runtimes that have it.
func (k Kyma) open(ctx context.Context) (installation.Releases, installation.Installer, error) {
	if k.ReleasesPath == "" {
		return noReleases{}, applier.New(applier.Options{Manifests: noReleases{}, Now: time.Now}), nil
	}

	releases := catalog.New(catalog.Folder{FS: os.DirFS(k.ReleasesPath)})
	if err := releases.Check(ctx); err != nil {
		return nil, nil, fmt.Errorf("APP_KYMA_RELEASES_PATH: %w", err)
	}

	return releases, applier.New(applier.Options{Manifests: releases, Now: time.Now}), nil
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
		"kymaConfig: this Provisioner has no releases of Kyma: leave it out, or have APP_KYMA_RELEASES_PATH name their folder")
}
