package shoot

import gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

// ToSleep reports whether the cluster is meant to be hibernated.
func ToSleep(shoot *gardencorev1beta1.Shoot) bool {
	hibernation := shoot.Spec.Hibernation

	return hibernation != nil && hibernation.Enabled != nil && *hibernation.Enabled
}

// Asleep reports whether nobody answers in the cluster, now or soon.
func Asleep(shoot *gardencorev1beta1.Shoot) bool { return shoot.Status.IsHibernated || ToSleep(shoot) }
