package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Create implements testing.ObjectTracker.
func (s *Store) Create(resource schema.GroupVersionResource, object runtime.Object, namespace string, options ...metav1.CreateOptions) error {
	return s.change(resource, namespace, object, func(m merger, old client.Object) (runtime.Object, error) {
		if old != nil {
			return nil, apierrors.NewAlreadyExists(resource.GroupResource(), old.GetName())
		}
		return m.replace(nil, object, only(options).FieldManager)
	})
}

// Update implements testing.ObjectTracker.
func (s *Store) Update(resource schema.GroupVersionResource, object runtime.Object, namespace string, options ...metav1.UpdateOptions) error {
	return s.replace(resource, object, namespace, only(options).FieldManager)
}

// Patch implements testing.ObjectTracker; the object is patched already.
func (s *Store) Patch(resource schema.GroupVersionResource, object runtime.Object, namespace string, options ...metav1.PatchOptions) error {
	return s.replace(resource, object, namespace, only(options).FieldManager)
}

func (s *Store) replace(resource schema.GroupVersionResource, object runtime.Object, namespace, manager string) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return fmt.Errorf("change %T: %w", object, err)
	}
	return s.change(resource, namespace, object, func(m merger, old client.Object) (runtime.Object, error) {
		if old == nil {
			return nil, apierrors.NewNotFound(resource.GroupResource(), accessor.GetName())
		}
		return m.replace(old, object, manager)
	})
}

// Apply implements testing.ObjectTracker: server-side apply.
func (s *Store) Apply(
	resource schema.GroupVersionResource, configuration runtime.Object, namespace string, options ...metav1.PatchOptions,
) error {
	return s.change(resource, namespace, configuration, func(m merger, old client.Object) (runtime.Object, error) {
		return m.apply(old, configuration, only(options))
	})
}

// Delete implements testing.ObjectTracker: the object goes at once.
func (s *Store) Delete(resource schema.GroupVersionResource, namespace, name string, _ ...metav1.DeleteOptions) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	old, err := s.find(resource, namespace, name)
	if err != nil {
		return err
	}
	if old == nil {
		return apierrors.NewNotFound(resource.GroupResource(), name)
	}
	if err := s.rules.ValidateDelete(old); err != nil {
		return err
	}
	if err := s.files.remove(resource, namespace, name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.objects.Delete(resource, namespace, name); err != nil {
		return err
	}
	s.version++
	s.feed.publish(change{version: s.version, resource: resource, old: old})
	return nil
}

// merge returns what a change makes of the old object, which is nil where there is none.
type merge func(m merger, old client.Object) (runtime.Object, error)

// change makes one change: what was given is merged into the object, the rules complete and check that, and it is stored. What was given is
// brought up to date with it.
func (s *Store) change(resource schema.GroupVersionResource, namespace string, given runtime.Object, merge merge) error {
	accessor, err := meta.Accessor(given)
	if err != nil {
		return fmt.Errorf("change %T: %w", given, err)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	old, object, err := s.merged(resource, namespace, accessor.GetName(), merge)
	if err != nil {
		return err
	}
	stored, err := s.commit(resource, old, object)
	if err != nil {
		return err
	}
	if reflect.TypeOf(stored) == reflect.TypeOf(given) {
		return copyInto(stored, given)
	}
	return nil
}

// Preview returns what Apply would store, and stores nothing.
func (s *Store) Preview(
	resource schema.GroupVersionResource, configuration client.Object, namespace string, options ...metav1.PatchOptions,
) (client.Object, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	_, object, err := s.merged(resource, namespace, configuration.GetName(), func(m merger, old client.Object) (runtime.Object, error) {
		return m.apply(old, configuration, only(options))
	})
	return object, err
}

// merged returns an object as it is, nil when there is none, and as it would be after the change.
func (s *Store) merged(resource schema.GroupVersionResource, namespace, name string, merge merge) (old, object client.Object, err error) {
	merger, err := s.merger(resource)
	if err != nil {
		return nil, nil, err
	}
	if old, err = s.find(resource, namespace, name); err != nil {
		return nil, nil, err
	}
	made, err := merge(merger, old)
	if err != nil {
		return nil, nil, err
	}
	object, ok := made.(client.Object)
	if !ok {
		return nil, nil, fmt.Errorf("change %T: it has no metadata", made)
	}
	if err := place(object, namespace); err != nil {
		return nil, nil, err
	}
	return old, object, s.admit(old, object)
}

func (s *Store) admit(old, object client.Object) error {
	if err := inherit(old, object); err != nil {
		return err
	}
	s.scheme.Default(object)
	if err := s.rules.Default(old, object); err != nil {
		return err
	}
	raiseGeneration(old, object)
	return s.rules.Validate(old, object)
}

// commit stores an object, first in its file and then for all to see, unless nothing has changed.
func (s *Store) commit(resource schema.GroupVersionResource, old, object client.Object) (client.Object, error) {
	if old != nil {
		same, err := equal(old, object)
		if err != nil || same {
			return old, err
		}
	}
	object.SetResourceVersion(strconv.FormatUint(s.version+1, 10))
	content, err := s.encoded(object)
	if err != nil {
		return nil, err
	}
	// What is stored is what would be read from the file, for instance times in whole seconds.
	stored, err := s.decoded(content)
	if err != nil {
		return nil, err
	}
	if err := s.files.write(resource, stored.GetNamespace(), stored.GetName(), content); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old == nil {
		err = s.objects.Create(resource, stored, stored.GetNamespace())
	} else {
		err = s.objects.Update(resource, stored, stored.GetNamespace())
	}
	if err != nil {
		return nil, err
	}
	s.version++
	s.feed.publish(change{version: s.version, resource: resource, old: old, object: stored})
	return stored, nil
}

func (s *Store) encoded(object client.Object) ([]byte, error) {
	kind, err := apiutil.GVKForObject(object, s.scheme)
	if err != nil {
		return nil, fmt.Errorf("find the kind of %T: %w", object, err)
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	content, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", kind.Kind, object.GetName(), err)
	}
	return content, nil
}

// equal says whether two states of an object differ in no more than the resource version and the times of the field managers.
func equal(a, b client.Object) (bool, error) {
	var contents [2][]byte
	for i, object := range []client.Object{a, b} {
		bare, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			return false, fmt.Errorf("compare %T: it has no metadata", object)
		}
		bare.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		bare.SetResourceVersion("")
		managers := bare.GetManagedFields()
		for j := range managers {
			managers[j].Time = nil
		}
		bare.SetManagedFields(managers)
		content, err := json.Marshal(bare)
		if err != nil {
			return false, fmt.Errorf("compare %s: %w", object.GetName(), err)
		}
		contents[i] = content
	}
	return bytes.Equal(contents[0], contents[1]), nil
}

// copyInto makes the target, a pointer, equal to the source, a pointer of the same type.
func copyInto(source, target runtime.Object) error {
	from, to := reflect.ValueOf(source.DeepCopyObject()), reflect.ValueOf(target)
	if from.Type() != to.Type() {
		return fmt.Errorf("%T cannot be read into %T", source, target)
	}
	to.Elem().Set(from.Elem())
	return nil
}
