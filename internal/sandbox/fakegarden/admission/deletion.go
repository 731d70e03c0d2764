package admission

import (
	"fmt"
	"strconv"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// confirmed refuses to delete a Shoot whose deletion is not confirmed by its annotation.
func confirmed(shoot *gardencorev1beta1.Shoot) error {
	if yes, err := strconv.ParseBool(shoot.Annotations[v1beta1constants.ConfirmationDeletion]); err == nil && yes {
		return nil
	}
	return forbidden(shoot, fmt.Errorf("must have a %q annotation to delete", v1beta1constants.ConfirmationDeletion))
}

// keepsFinalizer refuses to take the finalizer of the gardenlet from a Shoot before it has done its work.
func keepsFinalizer(old, shoot *gardencorev1beta1.Shoot) error {
	if controllerutil.ContainsFinalizer(old, gardencorev1beta1.GardenerName) &&
		!controllerutil.ContainsFinalizer(shoot, gardencorev1beta1.GardenerName) {
		return finished(shoot)
	}
	return nil
}

// finished refuses that a Shoot goes of which the gardenlet has not said that it is deleted.
func finished(shoot *gardencorev1beta1.Shoot) error {
	last := shoot.Status.LastOperation
	if shoot.Status.TechnicalID == "" || last == nil {
		return nil
	}
	if last.Type == gardencorev1beta1.LastOperationTypeDelete &&
		last.State == gardencorev1beta1.LastOperationStateSucceeded && last.Progress == 100 {
		return nil
	}
	return forbidden(shoot, fmt.Errorf("finalizer %q cannot be removed because shoot deletion has not completed successfully yet",
		gardencorev1beta1.GardenerName))
}
