package shoot

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// Keep takes over from the present Shoot what a change does not decide: versions that Gardener has raised meanwhile, whether the
// cluster sleeps, the Seed that it has moved to, and what others have added to lists and configurations that are written whole. Gardener takes no older
// version back. Fields that the Provisioner never writes need no help: server-side apply leaves them to their owners.
func (o *Objects) Keep(present *gardencorev1beta1.Shoot) {
	wanted, had := &o.Shoot.Spec, &present.Spec
	wanted.Kubernetes.Version = newer(wanted.Kubernetes.Version, had.Kubernetes.Version)

	for i := range wanted.Provider.Workers {
		worker := &wanted.Provider.Workers[i]
		for _, before := range had.Provider.Workers {
			if before.Name == worker.Name {
				keepImage(worker.Machine.Image, before.Machine.Image)
				keepConfig(worker.ProviderConfig, before.ProviderConfig)
			}
		}
	}

	if had.Hibernation != nil && had.Hibernation.Enabled != nil {
		wanted.Hibernation = &gardencorev1beta1.Hibernation{Enabled: had.Hibernation.Enabled}
	}

	if wanted.SeedName != nil && had.SeedName != nil {
		wanted.SeedName = had.SeedName
	}

	keepConfig(wanted.Provider.InfrastructureConfig, had.Provider.InfrastructureConfig)
	keepConfig(wanted.Provider.ControlPlaneConfig, had.Provider.ControlPlaneConfig)
	keepExtensions(wanted, had)

	wanted.Resources = withOthers(wanted.Resources, had.Resources,
		func(resource gardencorev1beta1.NamedResourceReference) string { return resource.Name })
	wanted.AccessRestrictions = withOthers(wanted.AccessRestrictions, had.AccessRestrictions,
		func(restriction gardencorev1beta1.AccessRestrictionWithOptions) string { return restriction.Name })
}

// keepExtensions leaves the extensions as they are that the Shoot has, but for what an order and the landscape decide of them: whether
// the networking filter works, and where audit logs go. An extension that new Shoots do not get any more stays with those that have it.
func keepExtensions(wanted, had *gardencorev1beta1.ShootSpec) {
	for i := range wanted.Extensions {
		extension := &wanted.Extensions[i]

		at := slices.IndexFunc(had.Extensions, func(e gardencorev1beta1.Extension) bool { return e.Type == extension.Type })
		if at < 0 || extension.Type == ExtensionAuditLog {
			continue
		}

		disabled := extension.Disabled
		*extension = *had.Extensions[at].DeepCopy()

		if extension.Type == ExtensionNetworkingFilter {
			extension.Disabled = disabled
		}
	}

	wanted.Extensions = withOthers(wanted.Extensions, had.Extensions,
		func(extension gardencorev1beta1.Extension) string { return extension.Type })
}

// withOthers adds to a list those of the present one whose names it does not have.
func withOthers[T any](wanted, had []T, name func(T) string) []T {
	for _, item := range had {
		if !slices.ContainsFunc(wanted, func(other T) bool { return name(other) == name(item) }) {
			wanted = append(wanted, item)
		}
	}

	return wanted
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
