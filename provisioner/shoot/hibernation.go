package shoot

import (
	"context"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// Reader reads Shoots. Its errors are of package failure, NotFound for a Shoot that does not exist.
type Reader interface {
	Get(ctx context.Context, name string) (*gardencorev1beta1.Shoot, error)
}

// ToSleep reports whether the Shoot asks for hibernation.
func ToSleep(shoot *gardencorev1beta1.Shoot) bool {
	hibernation := shoot.Spec.Hibernation

	return hibernation != nil && hibernation.Enabled != nil && *hibernation.Enabled
}

// Asleep reports whether the API server of the cluster does not answer because of hibernation, or will stop answering soon.
func Asleep(shoot *gardencorev1beta1.Shoot) bool { return shoot.Status.IsHibernated || ToSleep(shoot) }
