package runtimes

import (
	"context"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/sirupsen/logrus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/seed"
)

// VersionOfShoot returns what Options.Version needs: the version that the Shoot of a runtime of the project asks for.
func VersionOfShoot(garden client.Reader, project string, log logrus.FieldLogger) func(ctx context.Context, technicalID string) string {
	return func(ctx context.Context, technicalID string) string {
		name := strings.TrimPrefix(technicalID, gardenlet.TechnicalID(project, ""))
		shoot := &gardencorev1beta1.Shoot{}
		if err := garden.Get(ctx, client.ObjectKey{Namespace: seed.Namespace(project), Name: name}, shoot); err != nil {
			log.WithError(err).WithField("shoot", name).Debug("the version of a runtime is not known")
			return ""
		}
		return shoot.Spec.Kubernetes.Version
	}
}
