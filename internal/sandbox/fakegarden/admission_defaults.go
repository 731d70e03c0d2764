package fakegarden

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// complete sets the defaults that Gardener's admission plugins set: the creator, the reference to the cloud profile, the latest
// patch version of Kubernetes, and the architecture and image of machines. It also starts the operation that the Shoot's
// annotation requests. It does not change a Shoot that is being deleted.
//
// It runs before validate, so validation rules can rely on the defaults. The defaults are stored with the Shoot, and no field
// manager owns them. A later apply without these fields therefore leaves them unchanged.
func (a admission) complete(ctx context.Context, old, shoot *gardencorev1beta1.Shoot) error {
	if shoot.DeletionTimestamp != nil {
		return nil
	}
	if old.UID == "" {
		if cloudProfileName(&shoot.Spec) != nil && shoot.Spec.CloudProfile != nil {
			return errors.New("new shoot can only specify either cloudProfileName or cloudProfile reference")
		}
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.GardenCreatedBy, user)
		shoot.Status = gardencorev1beta1.ShootStatus{}
	}
	reconcileAgain(shoot)
	if name := cloudProfileName(&shoot.Spec); name != nil && shoot.Spec.CloudProfile == nil {
		shoot.Spec.CloudProfile = &gardencorev1beta1.CloudProfileReference{
			Kind: v1beta1constants.CloudProfileReferenceKindCloudProfile, Name: *name,
		}
	}
	profile, err := a.cloudProfile(ctx, shoot)
	if err != nil || profile == nil {
		return err
	}
	if version := &shoot.Spec.Kubernetes.Version; strings.Count(*version, ".") < 2 {
		versions := names(profile.Kubernetes.Versions, func(offered gardencorev1beta1.ExpirableVersion) string { return offered.Version })
		if newest, ok := newest(versions, *version); ok {
			*version = newest
		}
	}
	var found problems
	for i := range shoot.Spec.Provider.Workers {
		worker := &shoot.Spec.Provider.Workers[i]
		if worker.Machine.Architecture == nil {
			worker.Machine.Architecture = new(v1beta1constants.ArchitectureAMD64)
		}
		problem := completeImage(profile, old, worker, field.NewPath("spec", "provider", "workers").Index(i))
		found.add(problem != nil, problem)
	}
	return forbid(shoot, found)
}

// reconcileAgain increments the generation if an annotation of the Shoot requests a retry or a reconciliation, and removes the
// annotation. A retry applies only after a failed operation; a reconciliation applies in all other cases. The gardenlet starts an
// operation for each new generation. An annotation that does not apply is kept and has no effect.
func reconcileAgain(shoot *gardencorev1beta1.Shoot) {
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

// confines implements kubeapi.Options.Defers. If a Shoot confines changes to its maintenance window, only a change of the hibernation
// increments the generation.
func confines(old, object client.Object) bool {
	before, isShoot := old.(*gardencorev1beta1.Shoot)
	after, stays := object.(*gardencorev1beta1.Shoot)
	if !isShoot || !stays || after.Spec.Maintenance == nil || !ptr.Deref(after.Spec.Maintenance.ConfineSpecUpdateRollout, false) {
		return false
	}
	asleep := func(shoot *gardencorev1beta1.Shoot) bool {
		return shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
	}
	return asleep(before) == asleep(after)
}

// cloudProfile returns the profile that the Shoot refers to, or nil if it refers to none. In that case, validate rejects the
// Shoot later.
func (a admission) cloudProfile(ctx context.Context, shoot *gardencorev1beta1.Shoot) (*gardencorev1beta1.CloudProfileSpec, error) {
	if shoot.Spec.CloudProfile == nil {
		return nil, nil
	}
	profile := &gardencorev1beta1.CloudProfile{}
	if err := a.Get(ctx, client.ObjectKey{Name: shoot.Spec.CloudProfile.Name}, profile); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("could not find referenced cloud profile: %w", err))
	}
	return &profile.Spec, nil
}

// completeImage sets the machine image of a worker pool if the name or version of the image is missing. An existing pool keeps
// its image, so that a change of the Shoot does not replace its nodes. A new pool gets the latest version of the image that it
// names. If it names none, it gets the first image in the cloud profile. completeImage returns a problem if the cloud profile
// does not offer the image.
func completeImage(
	profile *gardencorev1beta1.CloudProfileSpec, old *gardencorev1beta1.Shoot, worker *gardencorev1beta1.Worker, path *field.Path,
) *field.Error {
	image := worker.Machine.Image
	if image != nil && present(image.Version) {
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
		versions := names(offered.Versions, func(version gardencorev1beta1.MachineImageVersion) string { return version.Version })
		if newest, ok := newest(versions, ""); ok {
			worker.Machine.Image = &gardencorev1beta1.ShootMachineImage{Name: offered.Name, Version: new(newest)}
			return nil
		}
	}
	if image == nil {
		return field.Invalid(path, "", "the cloud profile does not contain any machine image - cannot create shoot cluster")
	}
	return field.Invalid(path, image.Name, "image is not supported")
}

// workerNamed returns the worker pool with the given name, or an empty pool if the Shoot has no such pool. Pools are compared by
// name because a change can reorder them.
func workerNamed(shoot *gardencorev1beta1.Shoot, name string) gardencorev1beta1.Worker {
	for _, worker := range shoot.Spec.Provider.Workers {
		if worker.Name == name {
			return worker
		}
	}
	return gardencorev1beta1.Worker{}
}

// newest returns the latest version, or false if there is none. If within is not empty, only versions within it are considered:
// 1.35.4 is within 1.35. Strings that are not versions are ignored. Versions are compared semantically, so 1.10 is newer than
// 1.9.
func newest(versions []string, within string) (string, bool) {
	var parsed []*semver.Version
	for _, text := range versions {
		if version, err := semver.NewVersion(text); err == nil && (within == "" || strings.HasPrefix(text, within+".")) {
			parsed = append(parsed, version)
		}
	}
	if len(parsed) == 0 {
		return "", false
	}
	return slices.MaxFunc(parsed, (*semver.Version).Compare).Original(), true
}
