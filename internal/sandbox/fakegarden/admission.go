package fakegarden

import (
	"context"
	"fmt"
	"strconv"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// admission completes and rejects Shoots as Gardener's API server does, as far as the project meets its rules. Other objects have
// no rules. The errors have the reasons and texts of Gardener:
//   - Invalid (422): the Shoot or its change is wrong, whatever the garden contains. See validate.
//   - Forbidden (403): the Shoot refers to a missing object, or its project or provider does not offer what it requests. See allow.
//   - InternalError (500): the project or the cloud profile is missing.
//
// Package conformance tests the rules on both gardens. Gardener has more rules; a missing one shows up as a Shoot that only the
// local garden rejects.
type admission struct {
	client.Reader
}

// admit implements the function Admit of kubeapi.Options. The order is that of Gardener: defaults first, then the validation of
// the Shoot alone, then the rules that need other objects. A removal is the last step of a deletion, after all finalizers.
func admit(ctx context.Context, objects client.Reader, old, object client.Object) error {
	stored, _ := old.(*gardencorev1beta1.Shoot)
	shoot, _ := object.(*gardencorev1beta1.Shoot)
	switch {
	case stored == nil && shoot == nil:
		return nil
	case stored == nil:
		stored = &gardencorev1beta1.Shoot{}
	case shoot == nil && stored.DeletionTimestamp != nil:
		return deleted(stored)
	case shoot == nil:
		return confirmed(stored)
	}
	rules := admission{objects}
	if err := rules.complete(ctx, stored, shoot); err != nil {
		return err
	}
	if stored.UID != "" && stored.DeletionTimestamp == nil && shoot.DeletionTimestamp != nil {
		return confirmed(shoot)
	}
	if problems := validate(stored, shoot); len(problems) > 0 {
		return apierrors.NewInvalid(gardencorev1beta1.Kind("Shoot"), shoot.Name, problems)
	}
	return rules.allow(ctx, stored, shoot)
}

// confirmed rejects a deletion without the annotation that confirms it, which protects clusters from accidental deletion. In Gardener
// this is the plugin DeletionConfirmation. The annotation must be stored before the deletion: a deletion cannot carry one.
func confirmed(shoot *gardencorev1beta1.Shoot) error {
	if yes, err := strconv.ParseBool(shoot.Annotations[v1beta1constants.ConfirmationDeletion]); err == nil && yes {
		return nil
	}
	return forbidden(shoot, fmt.Errorf("must have a %q annotation to delete", v1beta1constants.ConfirmationDeletion))
}

// keepsFinalizer rejects a change that removes the finalizer of the gardenlet before the Shoot is deleted. Without the finalizer, a
// deletion would leave the runtime and its machines behind.
func keepsFinalizer(old, shoot *gardencorev1beta1.Shoot) error {
	if controllerutil.ContainsFinalizer(old, gardencorev1beta1.GardenerName) &&
		!controllerutil.ContainsFinalizer(shoot, gardencorev1beta1.GardenerName) {
		return deleted(shoot)
	}
	return nil
}

// deleted rejects the removal of a Shoot before the gardenlet has reported its deletion as complete. A Shoot that no gardenlet
// has worked on can be removed.
func deleted(shoot *gardencorev1beta1.Shoot) error {
	last := shoot.Status.LastOperation
	if shoot.Status.TechnicalID == "" || last == nil || last.Type == gardencorev1beta1.LastOperationTypeDelete &&
		last.State == gardencorev1beta1.LastOperationStateSucceeded && last.Progress == 100 {
		return nil
	}
	return forbidden(shoot, fmt.Errorf("finalizer %q cannot be removed because shoot deletion has not completed successfully yet",
		gardencorev1beta1.GardenerName))
}

// forbidden returns a 403 for a Shoot, as the admission plugins of Gardener do. The Provisioner shows the text to users, who can then
// correct their request.
func forbidden(shoot *gardencorev1beta1.Shoot, err error) error {
	return apierrors.NewForbidden(gardencorev1beta1.Resource("shoots"), shoot.Name, err)
}

// forbid returns the problems as one error, as an admission plugin does, nil if there are none. The aggregate removes duplicates and
// puts several problems into brackets.
func forbid(shoot *gardencorev1beta1.Shoot, found problems) error {
	if len(found) == 0 {
		return nil
	}
	return forbidden(shoot, field.ErrorList(found).ToAggregate())
}

// problems collects the errors of fields, so that one response reports all of them.
type problems field.ErrorList

// add adds the problem if wrong is true. Callers create the problem either way, which keeps a rule on one line.
func (p *problems) add(wrong bool, problem *field.Error) {
	if wrong {
		*p = append(*p, problem)
	}
}

// join adds the problems that a validation of apimachinery has found.
func (p *problems) join(more field.ErrorList) { *p = append(*p, more...) }
