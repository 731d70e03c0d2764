package store

import (
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// shootLists says which lists of a Shoot are no single value: their items belong to whoever wrote each of them, as Gardener's own types
// have it. All else of it, and of other kinds, is what its content looks like.
const shootLists = `types:
- name: Shoot
  map:
    fields:
    - {name: spec, type: {namedType: Spec}}
    elementType: {namedType: deduced}
- name: Spec
  map:
    fields:
    - {name: provider, type: {namedType: Provider}}
    - name: tolerations
      type:
        list: {elementType: {namedType: deduced}, elementRelationship: associative, keys: [key]}
    elementType: {namedType: deduced}
- name: Provider
  map:
    fields:
    - name: workers
      type:
        list: {elementType: {namedType: deduced}, elementRelationship: associative, keys: [name]}
    elementType: {namedType: deduced}
- name: deduced
  scalar: untyped
  list: {elementType: {namedType: atomic}, elementRelationship: atomic}
  map: {elementType: {namedType: deduced}, elementRelationship: separable}
- name: atomic
  scalar: untyped
  list: {elementType: {namedType: atomic}, elementRelationship: atomic}
  map: {elementType: {namedType: atomic}, elementRelationship: atomic}
`

// converter tells server-side apply which parts of an object have an owner of their own.
type converter struct {
	managedfields.TypeConverter

	shoot typed.ParseableType
}

func newConverter() (converter, error) {
	parser, err := typed.NewParser(shootLists)
	if err != nil {
		return converter{}, fmt.Errorf("read which lists a Shoot has: %w", err)
	}
	return converter{TypeConverter: managedfields.NewDeducedTypeConverter(), shoot: parser.Type("Shoot")}, nil
}

// ObjectToTyped implements managedfields.TypeConverter.
func (c converter) ObjectToTyped(object runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	switch object := object.(type) {
	case *gardencorev1beta1.Shoot:
		return c.shoot.FromStructured(object, options...)
	case *unstructured.Unstructured:
		if object.GroupVersionKind() == gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot") {
			return c.shoot.FromUnstructured(object.Object, options...)
		}
	}
	return c.TypeConverter.ObjectToTyped(object, options...)
}
