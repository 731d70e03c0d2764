package service

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/installation/manifest"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// Kyma is what can be installed on clusters: the releases of a folder, or of a repository.
type Kyma struct {
	ReleasesPath       string        `env:"RELEASES_PATH"       help:"folder of the releases of Kyma; without it and a repository, orders with kymaConfig are refused"`
	ReleasesRepository string        `env:"RELEASES_REPOSITORY" help:"OCI repository of the releases in place of a folder, like registry.example.com/team/releases"`
	ReleasesCachePath  string        `env:"RELEASES_CACHE_PATH" help:"folder in which releases of the repository are kept; needed with it"`
	ReleasesUsername   string        `env:"RELEASES_USERNAME"   help:"user of the repository; empty for none"`
	ReleasesPassword   secret.String `env:"RELEASES_PASSWORD"   help:"the user's password"`
	ReleasesInsecure   bool          `env:"RELEASES_INSECURE"   help:"speak HTTP without TLS to the repository"`
	ReleasesCalls      int           `env:"RELEASES_CALLS"      help:"how many calls to the repository may run at the same time, in one replica"`
}

// noReleases has nothing to install.
type noReleases struct{}

// Plan implements installation.Releases.
func (noReleases) Plan(context.Context, spec.Kyma) (installation.Plan, error) {
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
