package service

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/installation"
)

// noReleases refuses every order of Kyma.
type noReleases struct{}

// Plan implements installation.Releases.
func (noReleases) Plan(context.Context, model.KymaConfigInput) (installation.Plan, error) {
	return installation.Plan{}, failure.New(failure.Invalid,
		"kymaConfig: this Provisioner has no releases of Kyma: leave it out, or have APP_KYMA_RELEASES_PATH name their folder")
}
