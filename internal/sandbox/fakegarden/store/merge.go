package store

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// merger merges changes into objects of one kind and keeps account of who has which fields.
type merger struct {
	scheme *runtime.Scheme
	kind   schema.GroupVersionKind
	fields *managedfields.FieldManager
}

// merger returns the one of a resource. It is kept, because to make it takes as long as a change. The caller holds writing.
func (s *Store) merger(resource schema.GroupVersionResource) (merger, error) {
	if known, ok := s.mergers[resource]; ok {
		return known, nil
	}
	kind, err := s.kindOf(resource)
	if err != nil {
		return merger{}, err
	}
	fields, err := managedfields.NewDefaultFieldManager(s.converter, s.scheme, asItIs{}, s.scheme, kind, kind.GroupVersion(), "", nil)
	if err != nil {
		return merger{}, fmt.Errorf("manage the fields of %s: %w", kind.Kind, err)
	}
	made := merger{scheme: s.scheme, kind: kind, fields: fields}
	s.mergers[resource] = made
	return made, nil
}

// asItIs completes no object: the rules do.
type asItIs struct{}

func (asItIs) Default(runtime.Object) {}

// replace returns the object as it is written in place of the old one, if there is one.
func (m merger) replace(old client.Object, object runtime.Object, manager string) (runtime.Object, error) {
	live, err := m.live(old)
	if err != nil {
		return nil, err
	}
	wanted := object.DeepCopyObject()
	wanted.GetObjectKind().SetGroupVersionKind(m.kind)
	return m.fields.Update(live, wanted, manager)
}

// apply returns the old object, if there is one, with the configuration applied to it.
func (m merger) apply(old client.Object, configuration runtime.Object, options metav1.PatchOptions) (runtime.Object, error) {
	live, err := m.live(old)
	if err != nil {
		return nil, err
	}
	return m.fields.Apply(live, configuration, options.FieldManager, options.Force != nil && *options.Force)
}

// live is a copy of the old object, or an empty one.
func (m merger) live(old client.Object) (runtime.Object, error) {
	if old != nil {
		return old.DeepCopyObject(), nil
	}
	empty, err := m.scheme.New(m.kind)
	if err != nil {
		return nil, fmt.Errorf("make an empty %s: %w", m.kind.Kind, err)
	}
	empty.GetObjectKind().SetGroupVersionKind(m.kind)
	return empty, nil
}

// place puts an object into the namespace of the request.
func place(object client.Object, namespace string) error {
	switch object.GetNamespace() {
	case namespace:
	case "":
		object.SetNamespace(namespace)
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("the object's namespace is %q, the request's %q", object.GetNamespace(), namespace))
	}
	return nil
}

// only returns the one element of options that may be left out.
func only[T any](options []T) (option T) {
	if len(options) > 0 {
		option = options[0]
	}
	return option
}
