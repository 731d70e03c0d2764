package seed

import (
	"fmt"
	"maps"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineImage is the only operating system image that the providers offer.
const MachineImage = "gardenlinux"

const accessRestrictionEU = "eu-access-only"

// offer is what a provider has to sell, from which its CloudProfile is made.
type offer struct {
	// profile is the name of the CloudProfile, provider the type of the provider.
	profile  string
	provider string
	machines []machine
	volumes  []string
	// regions maps the names of regions to those of their zones.
	regions map[string][]string
	// euRegions are the regions in which access can be restricted to staff from the EU.
	euRegions []string
}

type machine struct {
	name string
	cpu  int64
	// memory is in GiB.
	memory int64
}

func (o offer) cloudProfile() *gardencorev1beta1.CloudProfile {
	profile := &gardencorev1beta1.CloudProfile{
		ObjectMeta: metav1.ObjectMeta{Name: o.profile},
		Spec: gardencorev1beta1.CloudProfileSpec{
			Type:          o.provider,
			Kubernetes:    gardencorev1beta1.KubernetesSettings{Versions: kubernetesVersions()},
			MachineImages: []gardencorev1beta1.MachineImage{machineImage()},
		},
	}
	for _, machine := range o.machines {
		profile.Spec.MachineTypes = append(profile.Spec.MachineTypes, gardencorev1beta1.MachineType{
			Name:         machine.name,
			CPU:          *resource.NewQuantity(machine.cpu, resource.DecimalSI),
			GPU:          resource.MustParse("0"),
			Memory:       *resource.NewQuantity(machine.memory<<30, resource.BinarySI),
			Usable:       new(true),
			Architecture: new(v1beta1constants.ArchitectureAMD64),
		})
	}
	for _, volume := range o.volumes {
		profile.Spec.VolumeTypes = append(profile.Spec.VolumeTypes, gardencorev1beta1.VolumeType{
			Name: volume, Class: "standard", Usable: new(true),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(o.regions)) {
		region := gardencorev1beta1.Region{Name: name}
		for _, zone := range o.regions[name] {
			region.Zones = append(region.Zones, gardencorev1beta1.AvailabilityZone{Name: zone})
		}
		if slices.Contains(o.euRegions, name) {
			region.AccessRestrictions = []gardencorev1beta1.AccessRestriction{{Name: accessRestrictionEU}}
		}
		profile.Spec.Regions = append(profile.Spec.Regions, region)
	}
	return profile
}

// kubernetesVersions are offered by every provider, so that upgrades by a patch and by a minor version can be played.
func kubernetesVersions() []gardencorev1beta1.ExpirableVersion {
	return []gardencorev1beta1.ExpirableVersion{
		{Version: "1.36.3"},
		{Version: "1.36.1"},
		{Version: "1.35.4"},
		{Version: "1.35.2"},
		{Version: "1.34.7"},
		{Version: "1.34.5"},
		{Version: "1.33.11"},
		{Version: "1.33.9"},
		{Version: "1.32.13"},
	}
}

func machineImage() gardencorev1beta1.MachineImage {
	image := gardencorev1beta1.MachineImage{Name: MachineImage}
	for _, version := range []string{"1877.2.0", "1877.1.0", "1592.14.0"} {
		image.Versions = append(image.Versions, gardencorev1beta1.MachineImageVersion{
			ExpirableVersion: gardencorev1beta1.ExpirableVersion{Version: version},
			CRI:              []gardencorev1beta1.CRI{{Name: gardencorev1beta1.CRINameContainerD}},
			Architectures:    []string{v1beta1constants.ArchitectureAMD64},
		})
	}
	return image
}

// lettered returns the zones of a region that are called after it and a letter.
func lettered(region, separator, letters string) []string {
	zones := make([]string, 0, len(letters))
	for _, letter := range letters {
		zones = append(zones, fmt.Sprintf("%s%s%c", region, separator, letter))
	}
	return zones
}
