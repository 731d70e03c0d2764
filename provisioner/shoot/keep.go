package shoot

import (
	"strings"

	"github.com/Masterminds/semver/v3"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// Keep takes over from the present Shoot what a change does not decide: versions that Gardener has raised meanwhile, and whether the
// cluster sleeps. Gardener takes no older version back.
func (o *Objects) Keep(present *gardencorev1beta1.Shoot) {
	wanted, had := &o.Shoot.Spec, &present.Spec
	wanted.Kubernetes.Version = newer(wanted.Kubernetes.Version, had.Kubernetes.Version)

	for i := range wanted.Provider.Workers {
		worker := &wanted.Provider.Workers[i]
		for _, before := range had.Provider.Workers {
			if before.Name == worker.Name {
				keepImage(worker.Machine.Image, before.Machine.Image)
			}
		}
	}

	if had.Hibernation != nil && had.Hibernation.Enabled != nil {
		wanted.Hibernation = &gardencorev1beta1.Hibernation{Enabled: had.Hibernation.Enabled}
	}
}

func keepImage(wanted, had *gardencorev1beta1.ShootMachineImage) {
	if wanted != nil && had != nil && wanted.Name == had.Name && wanted.Version != nil && had.Version != nil {
		wanted.Version = new(newer(*wanted.Version, *had.Version))
	}
}

// newer returns the newer of two versions. A version that leaves its patch open is as new as the one that Gardener chose for it.
func newer(wanted, present string) string {
	if strings.HasPrefix(present, wanted+".") || Older(wanted, present) {
		return present
	}

	return wanted
}

// Older reports whether a version comes before the other. What is no version comes before nothing.
func Older(version, other string) bool {
	one, err := semver.NewVersion(version)
	if err != nil {
		return false
	}

	two, err := semver.NewVersion(other)

	return err == nil && one.LessThan(two)
}
