package fakegarden

import (
	"fmt"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateOffer finds values that the cloud profile does not offer. It checks only changed values: a Shoot can keep a value after
// the profile has dropped it. Gardener does this in its ShootValidator plugin. The checks are in the order in which Gardener's
// message lists the problems.
func validateOffer(found *problems, profile *gardencorev1beta1.CloudProfileSpec, old, shoot *gardencorev1beta1.Shoot) {
	path, region := field.NewPath("spec"), gardencorev1beta1.Region{}
	regions := names(profile.Regions, func(region gardencorev1beta1.Region) string { return region.Name })
	if i := slices.Index(regions, shoot.Spec.Region); i >= 0 {
		region = profile.Regions[i]
	}
	if version := shoot.Spec.Kubernetes.Version; version != old.Spec.Kubernetes.Version {
		versions := names(profile.Kubernetes.Versions, func(version gardencorev1beta1.ExpirableVersion) string { return version.Version })
		found.supported(versions, version, path.Child("kubernetes", "version"))
	}
	for i := range shoot.Spec.Provider.Workers {
		worker, at := &shoot.Spec.Provider.Workers[i], path.Child("provider", "workers").Index(i)
		before := workerNamed(old, worker.Name)
		validateMachine(found, profile, &before, worker, at)
		if !slices.Equal(before.Zones, worker.Zones) {
			validateZones(found, region, shoot.Spec.Region, worker.Zones, at.Child("zones"))
		}
	}
	if shoot.Spec.Region != old.Spec.Region {
		found.supported(regions, shoot.Spec.Region, path.Child("region"))
	}
	restriction := func(restriction gardencorev1beta1.AccessRestrictionWithOptions) string { return restriction.Name }
	restrictions := names(shoot.Spec.AccessRestrictions, restriction)
	if slices.Equal(restrictions, names(old.Spec.AccessRestrictions, restriction)) {
		return
	}
	offered := names(region.AccessRestrictions, func(restriction gardencorev1beta1.AccessRestriction) string { return restriction.Name })
	for i, name := range restrictions {
		found.supported(offered, name, path.Child("accessRestrictions").Index(i))
	}
}

// validateMachine checks the changed values of a worker pool: machine type, machine image and volume type. As in Gardener, the
// messages list the offered values in sorted order. before is the stored pool with the same name, or an empty pool if worker is
// new. The image is checked by name and version; the message contains only the version.
func validateMachine(
	found *problems, profile *gardencorev1beta1.CloudProfileSpec, before, worker *gardencorev1beta1.Worker, path *field.Path,
) {
	if worker.Machine.Type != before.Machine.Type {
		machines := names(profile.MachineTypes, func(machine gardencorev1beta1.MachineType) string { return machine.Name })
		slices.Sort(machines)
		found.supported(machines, worker.Machine.Type, path.Child("machine", "type"))
	}
	image, previous := worker.Machine.Image, before.Machine.Image
	if image != nil && image.Version != nil && (previous == nil || previous.Name != image.Name || *previous.Version != *image.Version) {
		var images []string
		for _, offered := range profile.MachineImages {
			for _, version := range offered.Versions {
				images = append(images, fmt.Sprintf("%s:%s", offered.Name, version.Version))
			}
		}
		slices.Sort(images)
		found.add(!slices.Contains(images, image.Name+":"+*image.Version),
			field.NotSupported(path.Child("machine", "image", "version"), *image.Version, images))
	}
	volume, previousVolume := worker.Volume, before.Volume
	if volume == nil || volume.Type == nil || previousVolume != nil && previousVolume.Type != nil && *previousVolume.Type == *volume.Type {
		return
	}
	volumes := names(profile.VolumeTypes, func(volume gardencorev1beta1.VolumeType) string { return volume.Name })
	slices.Sort(volumes)
	found.supported(volumes, *volume.Type, path.Child("volume", "type"))
}

// validateZones checks that the region offers the zones. name is the name of the region; region is empty if the provider does not
// offer it. Each repetition of a zone is another problem, because Gardener would create the subnets of the zone more than once.
func validateZones(found *problems, region gardencorev1beta1.Region, name string, wanted []string, path *field.Path) {
	zones := names(region.Zones, func(zone gardencorev1beta1.AvailabilityZone) string { return zone.Name })
	for i, zone := range wanted {
		if len(zones) == 0 {
			found.add(true, field.Invalid(path.Index(i), name, "this region does not support availability zones, please do not configure them"))
			continue
		}
		found.supported(zones, zone, path.Index(i))
		found.add(slices.Contains(wanted[:i], zone), field.Duplicate(path.Index(i), zone))
	}
}

// supported adds a problem if the wanted value is not offered. The message lists the offered values in the given order, so that
// users know the alternatives.
func (p *problems) supported(offered []string, wanted string, path *field.Path) {
	p.add(!slices.Contains(offered, wanted), field.NotSupported(path, wanted, offered))
}

// names returns the names of the items, in the same order. The result is never nil.
func names[T any](items []T, name func(T) string) []string {
	all := make([]string, len(items))
	for i, item := range items {
		all[i] = name(item)
	}
	return all
}
