package admission

import (
	"fmt"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateOffer returns what a Shoot asks for that its provider does not offer. What it had before, it may keep.
func validateOffer(profile *gardencorev1beta1.CloudProfileSpec, old, shoot *gardencorev1beta1.Shoot) field.ErrorList {
	path := field.NewPath("spec")
	var problems field.ErrorList
	if shoot.Spec.Kubernetes.Version != old.Spec.Kubernetes.Version {
		versions := names(profile.Kubernetes.Versions, func(version gardencorev1beta1.ExpirableVersion) string { return version.Version })
		problems = append(problems, offered(versions, shoot.Spec.Kubernetes.Version, path.Child("kubernetes", "version"))...)
	}
	for i := range shoot.Spec.Provider.Workers {
		worker := &shoot.Spec.Provider.Workers[i]
		before := workerNamed(old, worker.Name)
		problems = append(problems, validateMachine(profile, &before, worker, path.Child("provider", "workers").Index(i))...)
		problems = append(problems, validateZones(profile, shoot.Spec.Region, &before, worker, path.Child("provider", "workers").Index(i))...)
	}
	regions := names(profile.Regions, func(region gardencorev1beta1.Region) string { return region.Name })
	if shoot.Spec.Region != old.Spec.Region {
		problems = append(problems, offered(regions, shoot.Spec.Region, path.Child("region"))...)
	}
	return append(problems, validateAccessRestrictions(profile, old, shoot, path)...)
}

func validateMachine(
	profile *gardencorev1beta1.CloudProfileSpec, before, worker *gardencorev1beta1.Worker, path *field.Path,
) field.ErrorList {
	var problems field.ErrorList
	if worker.Machine.Type != before.Machine.Type {
		machines := names(profile.MachineTypes, func(machine gardencorev1beta1.MachineType) string { return machine.Name })
		slices.Sort(machines)
		problems = append(problems, offered(machines, worker.Machine.Type, path.Child("machine", "type"))...)
	}
	if image := worker.Machine.Image; image != nil && image.Version != nil {
		wanted := fmt.Sprintf("%s:%s", image.Name, *image.Version)
		if previous := before.Machine.Image; previous == nil || previous.Name != image.Name || *previous.Version != *image.Version {
			if images := machineImages(profile); !slices.Contains(images, wanted) {
				problems = append(problems, field.NotSupported(path.Child("machine", "image", "version"), *image.Version, images))
			}
		}
	}
	if volume := worker.Volume; volume != nil && volume.Type != nil {
		if before.Volume == nil || before.Volume.Type == nil || *before.Volume.Type != *volume.Type {
			volumes := names(profile.VolumeTypes, func(volume gardencorev1beta1.VolumeType) string { return volume.Name })
			slices.Sort(volumes)
			problems = append(problems, offered(volumes, *volume.Type, path.Child("volume", "type"))...)
		}
	}
	return problems
}

func machineImages(profile *gardencorev1beta1.CloudProfileSpec) []string {
	var images []string
	for _, image := range profile.MachineImages {
		for _, version := range image.Versions {
			images = append(images, fmt.Sprintf("%s:%s", image.Name, version.Version))
		}
	}
	slices.Sort(images)
	return images
}

func validateZones(
	profile *gardencorev1beta1.CloudProfileSpec, region string, before, worker *gardencorev1beta1.Worker, path *field.Path,
) field.ErrorList {
	if slices.Equal(before.Zones, worker.Zones) {
		return nil
	}
	index := slices.IndexFunc(profile.Regions, func(offered gardencorev1beta1.Region) bool { return offered.Name == region })
	var zones []string
	if index >= 0 {
		zones = names(profile.Regions[index].Zones, func(zone gardencorev1beta1.AvailabilityZone) string { return zone.Name })
	}
	var problems field.ErrorList
	for i, zone := range worker.Zones {
		at := path.Child("zones").Index(i)
		if len(zones) == 0 {
			problems = append(problems, field.Invalid(at, region,
				"this region does not support availability zones, please do not configure them"))
			continue
		}
		problems = append(problems, offered(zones, zone, at)...)
		if slices.Contains(worker.Zones[:i], zone) {
			problems = append(problems, field.Duplicate(at, zone))
		}
	}
	return problems
}

func validateAccessRestrictions(
	profile *gardencorev1beta1.CloudProfileSpec, old, shoot *gardencorev1beta1.Shoot, path *field.Path,
) field.ErrorList {
	restriction := func(restriction gardencorev1beta1.AccessRestrictionWithOptions) string { return restriction.Name }
	wanted := names(shoot.Spec.AccessRestrictions, restriction)
	if slices.Equal(wanted, names(old.Spec.AccessRestrictions, restriction)) {
		return nil
	}
	var supported []string
	for _, region := range profile.Regions {
		if region.Name == shoot.Spec.Region {
			supported = names(region.AccessRestrictions, func(restriction gardencorev1beta1.AccessRestriction) string { return restriction.Name })
		}
	}
	var problems field.ErrorList
	for i, name := range wanted {
		problems = append(problems, offered(supported, name, path.Child("accessRestrictions").Index(i))...)
	}
	return problems
}

// offered returns a problem if the wanted value is none of the supported ones.
func offered(supported []string, wanted string, path *field.Path) field.ErrorList {
	if slices.Contains(supported, wanted) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, wanted, supported)}
}

func names[T any](items []T, name func(T) string) []string {
	all := make([]string, len(items))
	for i, item := range items {
		all[i] = name(item)
	}
	return all
}
