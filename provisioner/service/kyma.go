package service

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// Kyma configures the releases of Kyma, in a folder or a repository.
type Kyma struct {
	ReleasesPath       string        `env:"RELEASES_PATH"       help:"folder with the releases of Kyma; without it and a repository, orders with kymaConfig are refused"`
	ReleasesRepository string        `env:"RELEASES_REPOSITORY" help:"OCI repository of the releases instead of a folder, for example registry.example.com/team/releases"`
	ReleasesCachePath  string        `env:"RELEASES_CACHE_PATH" help:"folder that caches releases of the repository; required with it"`
	ReleasesUsername   string        `env:"RELEASES_USERNAME"   help:"user of the repository; empty for none"`
	ReleasesPassword   secret.String `env:"RELEASES_PASSWORD"   help:"the user's password"`
	ReleasesInsecure   bool          `env:"RELEASES_INSECURE"   help:"use HTTP without TLS for the repository"`
	ReleasesCalls      int           `env:"RELEASES_CALLS"      help:"maximum number of concurrent calls to the repository, per replica"`
}

// noReleases refuses every order of Kyma. Runtimes that have Kyma can still be removed.
type noReleases struct{}

// Plan implements installation.Releases.
func (noReleases) Plan(context.Context, spec.Kyma) (installation.Plan, error) {
	return installation.Plan{}, errNoReleases()
}

// Manifests implements applier.Manifests.
func (noReleases) Manifests(context.Context, string) ([]installation.ManifestFile, error) {
	return nil, errNoReleases()
}

func errNoReleases() error {
	return failure.New(failure.Invalid,
		"kymaConfig: this Provisioner has no releases of Kyma: omit it, or set APP_KYMA_RELEASES_PATH or APP_KYMA_RELEASES_REPOSITORY")
}
