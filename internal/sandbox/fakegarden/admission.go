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

// admission sets the defaults of Shoots and validates them like Gardener's API server. It implements only the rules that matter
// to this project, and none for objects of other kinds. Errors have Gardener's reasons and messages:
//   - Invalid (422): the Shoot or its change is wrong, regardless of other objects. See validate.
//   - Forbidden (403): the Shoot refers to a missing object, or requests something that its project or provider does not offer.
//     See allow.
//   - InternalError (500): the project or the cloud profile is missing.
//
// Package conformance tests the rules on both gardens. Gardener has more rules, so the local garden can reject a Shoot that the
// fake garden accepts.
type admission struct {
	client.Reader
}

// admit implements kubeapi.Options.Admit. As in Gardener, it sets defaults first, then validates the Shoot alone, then applies
// the rules that need other objects. If object is nil, a Shoot without finalizers is about to be removed.
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

// confirmed rejects a deletion unless the Shoot has the annotation that confirms the deletion. The rule protects clusters from
// accidental deletion; in Gardener, the DeletionConfirmation plugin implements it. The annotation must be stored before the
// deletion, because a delete request cannot set annotations.
func confirmed(shoot *gardencorev1beta1.Shoot) error {
	if yes, err := strconv.ParseBool(shoot.Annotations[v1beta1constants.ConfirmationDeletion]); err == nil && yes {
		return nil
	}
	return forbidden(shoot, fmt.Errorf("must have a %q annotation to delete", v1beta1constants.ConfirmationDeletion))
}

// keepsFinalizer rejects a change that removes the gardenlet's finalizer before the gardenlet has completed the deletion.
// Without the finalizer, deleting the Shoot would leave its runtime and machines behind.
func keepsFinalizer(old, shoot *gardencorev1beta1.Shoot) error {
	if controllerutil.ContainsFinalizer(old, gardencorev1beta1.GardenerName) &&
		!controllerutil.ContainsFinalizer(shoot, gardencorev1beta1.GardenerName) {
		return deleted(shoot)
	}
	return nil
}

// deleted rejects the removal of a Shoot until the gardenlet has reported that the deletion is complete. A Shoot that no
// gardenlet has processed can be removed.
func deleted(shoot *gardencorev1beta1.Shoot) error {
	last := shoot.Status.LastOperation
	if shoot.Status.TechnicalID == "" || last == nil || last.Type == gardencorev1beta1.LastOperationTypeDelete &&
		last.State == gardencorev1beta1.LastOperationStateSucceeded && last.Progress == 100 {
		return nil
	}
	return forbidden(shoot, fmt.Errorf("finalizer %q cannot be removed because shoot deletion has not completed successfully yet",
		gardencorev1beta1.GardenerName))
}

// forbidden returns a 403 error about a Shoot, as Gardener's admission plugins do. The Provisioner shows the message to users so
// that they can correct their request.
func forbidden(shoot *gardencorev1beta1.Shoot, err error) error {
	return apierrors.NewForbidden(gardencorev1beta1.Resource("shoots"), shoot.Name, err)
}

// forbid combines all problems in one 403 error, as an admission plugin does, or returns nil if there are none. The message omits
// duplicates and encloses multiple problems in brackets.
func forbid(shoot *gardencorev1beta1.Shoot, found problems) error {
	if len(found) == 0 {
		return nil
	}
	return forbidden(shoot, field.ErrorList(found).ToAggregate())
}

// problems collects field errors, so that one response can report all of them.
type problems field.ErrorList

// add adds the problem if invalid is true. Passing the condition as an argument keeps each rule on one line.
func (p *problems) add(invalid bool, problem *field.Error) {
	if invalid {
		*p = append(*p, problem)
	}
}

// join adds errors from a validation function of apimachinery.
func (p *problems) join(more field.ErrorList) { *p = append(*p, more...) }
