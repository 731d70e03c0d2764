package admission

import (
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reader finds the objects that Shoots refer to.
type Reader interface {
	// Lookup reads the object of that key; the error tells a missing one as an API server does.
	Lookup(key client.ObjectKey, into client.Object) error
	// LookupAll reads all objects of a kind that have no namespace.
	LookupAll(into client.ObjectList) error
}

// Rules are the rules for changes of the objects that can be found by a Reader. Objects other than Shoots have none.
type Rules struct {
	objects Reader
}

// New returns the rules.
func New(objects Reader) Rules {
	return Rules{objects: objects}
}

// Default completes a new or changed object; old is nil for a new one.
func (r Rules) Default(old, object client.Object) error {
	shoot, ok := object.(*gardencorev1beta1.Shoot)
	if !ok {
		return nil
	}
	return r.complete(previous(old), shoot)
}

// Validate refuses a new or changed object, which is complete, by an error.
func (r Rules) Validate(old, object client.Object) error {
	shoot, ok := object.(*gardencorev1beta1.Shoot)
	if !ok {
		return nil
	}
	if begins(old, object) {
		return confirmed(shoot)
	}
	if problems := validate(previous(old), shoot); len(problems) > 0 {
		return apierrors.NewInvalid(gardencorev1beta1.Kind("Shoot"), shoot.Name, problems)
	}
	return r.allow(previous(old), shoot)
}

// ValidateDelete refuses that an object goes.
func (r Rules) ValidateDelete(object client.Object) error {
	shoot, ok := object.(*gardencorev1beta1.Shoot)
	if !ok {
		return nil
	}
	if shoot.DeletionTimestamp == nil {
		return confirmed(shoot)
	}
	return finished(shoot)
}

// begins says whether the change is the begin of a deletion, for which finalizers wait.
func begins(old, object client.Object) bool {
	return old != nil && old.GetDeletionTimestamp() == nil && object.GetDeletionTimestamp() != nil
}

// previous returns the Shoot before the change, an empty one if there was none.
func previous(old client.Object) *gardencorev1beta1.Shoot {
	if shoot, ok := old.(*gardencorev1beta1.Shoot); ok && shoot != nil {
		return shoot
	}
	return &gardencorev1beta1.Shoot{}
}

func forbidden(shoot *gardencorev1beta1.Shoot, err error) error {
	return apierrors.NewForbidden(gardencorev1beta1.Resource("shoots"), shoot.Name, err)
}

// refuse returns the problems as one error of the kind that admission plugins give, nil if there are none.
func refuse(shoot *gardencorev1beta1.Shoot, problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	return forbidden(shoot, problems.ToAggregate())
}

// unexpected is how Gardener tells that something that a Shoot refers to is missing, where it did not check before.
func unexpected(format string, arguments ...any) error {
	return apierrors.NewInternalError(fmt.Errorf(format, arguments...))
}
