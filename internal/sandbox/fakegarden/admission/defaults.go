package admission

import (
	"errors"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// creator is who all requests to the local garden come from.
const creator = "garden"

// complete fills in what a Shoot leaves open and acts on the operations that its annotations ask for.
func (r Rules) complete(old, shoot *gardencorev1beta1.Shoot) error {
	if shoot.DeletionTimestamp != nil {
		return nil
	}
	created := old.UID == ""
	if created {
		if cloudProfileName(&shoot.Spec) != nil && shoot.Spec.CloudProfile != nil {
			return errors.New("new shoot can only specify either cloudProfileName or cloudProfile reference")
		}
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.GardenCreatedBy, creator)
		shoot.Status = gardencorev1beta1.ShootStatus{}
	}
	startOver(shoot)
	if name := cloudProfileName(&shoot.Spec); name != nil && shoot.Spec.CloudProfile == nil {
		shoot.Spec.CloudProfile = &gardencorev1beta1.CloudProfileReference{
			Kind: v1beta1constants.CloudProfileReferenceKindCloudProfile, Name: *name,
		}
	}
	profile, err := r.cloudProfile(shoot)
	if err != nil || profile == nil {
		return err
	}
	return refuse(shoot, completeFrom(profile, old, shoot))
}

// startOver raises the generation if the Shoot asks by its annotation for another attempt or another reconciliation.
func startOver(shoot *gardencorev1beta1.Shoot) {
	last := shoot.Status.LastOperation
	if last == nil {
		return
	}
	wanted := v1beta1constants.GardenerOperationReconcile
	if last.State == gardencorev1beta1.LastOperationStateFailed {
		wanted = v1beta1constants.ShootOperationRetry
	}
	if shoot.Annotations[v1beta1constants.GardenerOperation] == wanted {
		delete(shoot.Annotations, v1beta1constants.GardenerOperation)
		shoot.Generation++
	}
}

// cloudProfile returns what the provider of a Shoot offers, nil if the Shoot names no profile.
func (r Rules) cloudProfile(shoot *gardencorev1beta1.Shoot) (*gardencorev1beta1.CloudProfileSpec, error) {
	if shoot.Spec.CloudProfile == nil {
		return nil, nil
	}
	profile := &gardencorev1beta1.CloudProfile{}
	if err := r.objects.Lookup(client.ObjectKey{Name: shoot.Spec.CloudProfile.Name}, profile); err != nil {
		return nil, unexpected("could not find referenced cloud profile: %w", err)
	}
	return &profile.Spec, nil
}

func completeFrom(profile *gardencorev1beta1.CloudProfileSpec, old, shoot *gardencorev1beta1.Shoot) field.ErrorList {
	var problems field.ErrorList
	if newest, ok := newestKubernetes(profile, shoot.Spec.Kubernetes.Version); ok {
		shoot.Spec.Kubernetes.Version = newest
	}
	for i := range shoot.Spec.Provider.Workers {
		worker := &shoot.Spec.Provider.Workers[i]
		if worker.Machine.Architecture == nil {
			worker.Machine.Architecture = new(v1beta1constants.ArchitectureAMD64)
		}
		problem := completeImage(profile, old, worker, field.NewPath("spec", "provider", "workers").Index(i))
		if problem != nil {
			problems = append(problems, problem)
		}
	}
	return problems
}

// newestKubernetes returns the newest version that begins as the given one, if that has fewer than three parts.
func newestKubernetes(profile *gardencorev1beta1.CloudProfileSpec, given string) (string, bool) {
	if strings.Count(given, ".") >= 2 {
		return "", false
	}
	var offered []string
	for _, version := range profile.Kubernetes.Versions {
		if given == "" || strings.HasPrefix(version.Version, given+".") {
			offered = append(offered, version.Version)
		}
	}
	return newest(offered)
}

// completeImage keeps the machine image of a worker that was there before, and gives a new one the newest.
func completeImage(
	profile *gardencorev1beta1.CloudProfileSpec, old *gardencorev1beta1.Shoot, worker *gardencorev1beta1.Worker, path *field.Path,
) *field.Error {
	image := worker.Machine.Image
	if image != nil && image.Version != nil && *image.Version != "" {
		return nil
	}
	if before := workerNamed(old, worker.Name).Machine.Image; before != nil && (image == nil || image.Name == before.Name) {
		worker.Machine.Image = before.DeepCopy()
		return nil
	}
	for _, offered := range profile.MachineImages {
		if image != nil && image.Name != offered.Name {
			continue
		}
		var versions []string
		for _, version := range offered.Versions {
			versions = append(versions, version.Version)
		}
		if newest, ok := newest(versions); ok {
			worker.Machine.Image = &gardencorev1beta1.ShootMachineImage{Name: offered.Name, Version: new(newest)}
			return nil
		}
	}
	if image == nil {
		return field.Invalid(path, "", "the cloud profile does not contain any machine image - cannot create shoot cluster")
	}
	return field.Invalid(path, image.Name, "image is not supported")
}

// workerNamed returns the worker pool of a Shoot with that name, an empty one if there is none.
func workerNamed(shoot *gardencorev1beta1.Shoot, name string) gardencorev1beta1.Worker {
	for _, worker := range shoot.Spec.Provider.Workers {
		if worker.Name == name {
			return worker
		}
	}
	return gardencorev1beta1.Worker{}
}

func newest(versions []string) (string, bool) {
	var parsed []*semver.Version
	for _, version := range versions {
		if version, err := semver.NewVersion(version); err == nil {
			parsed = append(parsed, version)
		}
	}
	if len(parsed) == 0 {
		return "", false
	}
	return slices.MaxFunc(parsed, (*semver.Version).Compare).Original(), true
}
