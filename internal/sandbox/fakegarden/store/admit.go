package store

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// admit completes and checks an object before it is stored: metadata, the defaults of its kind, and the rules. The
// rules validate the object as it will be stored, with its generation.
func (s *Store) admit(old, object client.Object) error {
	if secret, ok := object.(*corev1.Secret); ok {
		mergeStringData(secret)
	}
	if err := setMetadata(old, object); err != nil {
		return err
	}
	s.scheme.Default(object)
	if s.rules == nil {
		raiseGeneration(old, object)
		return nil
	}
	if err := s.rules.Default(old, object); err != nil {
		return err
	}
	raiseGeneration(old, object)
	return s.rules.Validate(old, object)
}

// setMetadata sets the fields that clients cannot choose: UID, times and generation. It rejects names that are not DNS names, which also keeps
// files inside the folder of the store.
func setMetadata(old, object client.Object) error {
	if old != nil {
		object.SetUID(old.GetUID())
		object.SetCreationTimestamp(old.GetCreationTimestamp())
		object.SetGeneration(old.GetGeneration())
		if old.GetDeletionTimestamp() != nil {
			object.SetDeletionTimestamp(old.GetDeletionTimestamp())
		}
		return nil
	}
	if problems := validation.NameIsDNSSubdomain(object.GetName(), false); len(problems) > 0 {
		kind := object.GetObjectKind().GroupVersionKind().GroupKind()
		return apierrors.NewInvalid(kind, object.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("metadata", "name"), object.GetName(), strings.Join(problems, ", ")),
		})
	}
	object.SetUID(uuid.NewUUID())
	object.SetCreationTimestamp(metav1.Now().Rfc3339Copy())
	object.SetDeletionTimestamp(nil)
	object.SetGeneration(0)
	if spec(object) != nil {
		object.SetGeneration(1)
	}
	return nil
}

// raiseGeneration raises the generation for a change of the spec or the start of a deletion, unless the rules have raised it already. Kinds
// without a spec have no generation.
func raiseGeneration(old, object client.Object) {
	if old == nil || spec(object) == nil || object.GetGeneration() != old.GetGeneration() {
		return
	}
	starts := old.GetDeletionTimestamp() == nil && object.GetDeletionTimestamp() != nil
	if starts || !apiequality.Semantic.DeepEqual(spec(old), spec(object)) {
		object.SetGeneration(old.GetGeneration() + 1)
	}
}

// spec returns the field Spec of a Go type, nil if its kind has none.
func spec(object client.Object) any {
	if value := reflect.ValueOf(object).Elem().FieldByName("Spec"); value.IsValid() {
		return value.Interface()
	}
	return nil
}

// mergeStringData moves the strings of a Secret to its data, as the API server does.
func mergeStringData(secret *corev1.Secret) {
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}
