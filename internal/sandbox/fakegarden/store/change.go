package store

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/atomicfile"
)

// Create implements testing.ObjectTracker.
func (s *Store) Create(resource schema.GroupVersionResource, object runtime.Object, namespace string, options ...metav1.CreateOptions) error {
	return s.update(resource, object, namespace, func(fields fieldManager, old client.Object) (runtime.Object, error) {
		if old != nil {
			return nil, apierrors.NewAlreadyExists(resource.GroupResource(), old.GetName())
		}
		return fields.update(nil, object, only(options).FieldManager)
	})
}

// Update implements testing.ObjectTracker. The resource version of the object is not compared: the fake client has done so.
func (s *Store) Update(resource schema.GroupVersionResource, object runtime.Object, namespace string, options ...metav1.UpdateOptions) error {
	return s.replace(resource, object, namespace, only(options).FieldManager)
}

// Patch implements testing.ObjectTracker; the object is patched already.
func (s *Store) Patch(resource schema.GroupVersionResource, object runtime.Object, namespace string, options ...metav1.PatchOptions) error {
	return s.replace(resource, object, namespace, only(options).FieldManager)
}

// replace stores an object in place of the one with its name, which must exist. owner becomes the manager of the changed fields.
func (s *Store) replace(resource schema.GroupVersionResource, object runtime.Object, namespace, owner string) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return fmt.Errorf("changing %T: %w", object, err)
	}
	return s.update(resource, object, namespace, func(fields fieldManager, old client.Object) (runtime.Object, error) {
		if old == nil {
			return nil, apierrors.NewNotFound(resource.GroupResource(), accessor.GetName())
		}
		return fields.update(old, object, owner)
	})
}

// update performs a change and updates given from the stored object, so that the caller sees its resource version and its defaults. An object
// of another Go type, such as an unstructured one, stays unchanged.
func (s *Store) update(resource schema.GroupVersionResource, given runtime.Object, namespace string, merge merge) error {
	stored, err := s.change(resource, given, namespace, false, merge)
	if err != nil || reflect.TypeOf(stored) != reflect.TypeOf(given) {
		return err
	}
	return copyInto(stored.DeepCopyObject(), given)
}

// Apply implements testing.ObjectTracker. It ignores the resource version of the configuration, which the fake client has set.
func (s *Store) Apply(
	resource schema.GroupVersionResource, configuration runtime.Object, namespace string, options ...metav1.PatchOptions,
) error {
	_, err := s.change(resource, configuration, namespace, false, func(fields fieldManager, old client.Object) (runtime.Object, error) {
		return fields.apply(old, configuration, only(options))
	})
	return err
}

// ServerSideApply applies a configuration as an API server does, and returns the object that results. If the configuration has a
// resource version, it must be the present one. With DryRun nothing is stored.
func (s *Store) ServerSideApply(
	resource schema.GroupVersionResource, configuration client.Object, namespace string, options metav1.PatchOptions,
) (client.Object, error) {
	dryRun := slices.Contains(options.DryRun, metav1.DryRunAll)
	return s.change(resource, configuration, namespace, dryRun, func(fields fieldManager, old client.Object) (runtime.Object, error) {
		if version := configuration.GetResourceVersion(); version != "" && (old == nil || version != old.GetResourceVersion()) {
			return nil, apierrors.NewConflict(resource.GroupResource(), configuration.GetName(), errors.New("the object has been modified"))
		}
		return fields.apply(old, configuration, options)
	})
}

// Delete implements testing.ObjectTracker. It removes the object at once: the fake client has handled its finalizers.
func (s *Store) Delete(resource schema.GroupVersionResource, namespace, name string, _ ...metav1.DeleteOptions) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	old, err := s.existing(resource, namespace, name)
	if err != nil {
		return err
	}
	return s.remove(resource, old)
}

// DeleteObject deletes an object as an API server does. If the preconditions have a UID, another UID is a conflict. An object with finalizers
// gets a deletion timestamp and is removed with its last finalizer.
func (s *Store) DeleteObject(resource schema.GroupVersionResource, namespace, name string, options metav1.DeleteOptions) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	old, err := s.existing(resource, namespace, name)
	if err != nil {
		return err
	}
	if expected := options.Preconditions; expected != nil && expected.UID != nil && *expected.UID != old.GetUID() {
		return apierrors.NewConflict(resource.GroupResource(), name, errors.New("the object has another UID"))
	}
	if len(old.GetFinalizers()) == 0 {
		return s.remove(resource, old)
	}
	deleted, err := asObject(old.DeepCopyObject())
	if err != nil {
		return err
	}
	deleted.SetDeletionTimestamp(new(metav1.Now()))
	_, err = s.write(resource, old, deleted, false)
	return err
}

// existing returns a stored object, or an error that is apierrors.IsNotFound.
func (s *Store) existing(resource schema.GroupVersionResource, namespace, name string) (client.Object, error) {
	found, err := s.find(resource, namespace, name)
	if err == nil && found == nil {
		err = apierrors.NewNotFound(resource.GroupResource(), name)
	}
	return found, err
}

// merge returns the result of a change of the old object, which is nil if there is none. It must not modify old.
type merge func(fields fieldManager, old client.Object) (runtime.Object, error)

// change merges given into the object of its name, admits the result and stores it. It returns the stored object, which the caller must not
// modify.
func (s *Store) change(
	resource schema.GroupVersionResource, given runtime.Object, namespace string, dryRun bool, merge merge,
) (client.Object, error) {
	accessor, err := meta.Accessor(given)
	if err != nil {
		return nil, fmt.Errorf("changing %T: %w", given, err)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	fields, err := s.fieldManager(resource)
	if err != nil {
		return nil, err
	}
	old, err := s.find(resource, namespace, accessor.GetName())
	if err != nil {
		return nil, err
	}
	merged, err := merge(fields, old)
	if err != nil {
		return nil, err
	}
	object, err := asObject(merged)
	if err != nil {
		return nil, err
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(namespace)
	}
	if object.GetNamespace() != namespace {
		return nil, apierrors.NewBadRequest(
			fmt.Sprintf("the namespace of the object is %q, that of the request %q", object.GetNamespace(), namespace))
	}
	return s.write(resource, old, object, dryRun)
}

// write admits an object and stores it, unless it is a dry run or nothing has changed. A deleted object without finalizers is removed. The
// file is written before the object becomes visible: if the process dies in between, the restarted store has the change, as
// if the process had died right after it.
func (s *Store) write(resource schema.GroupVersionResource, old, object client.Object, dryRun bool) (client.Object, error) {
	if err := s.admit(old, object); err != nil || dryRun {
		return object, err
	}
	if old != nil && object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 {
		return object, s.remove(resource, old)
	}
	object.SetResourceVersion(formatVersion(s.version + 1))
	content, err := s.encoded(object)
	if err != nil {
		return nil, err
	}
	// The file is read back: it keeps times in whole seconds, for instance.
	stored, err := s.decoded(content)
	if err != nil {
		return nil, err
	}
	if old != nil && apiequality.Semantic.DeepEqual(withoutVersion(old), withoutVersion(stored)) {
		return old, nil
	}
	if err := atomicfile.Write(s.path(resource, stored.GetNamespace(), stored.GetName()), content); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old == nil {
		err = s.ObjectTracker.Create(resource, stored, stored.GetNamespace())
	} else {
		err = s.ObjectTracker.Update(resource, stored, stored.GetNamespace())
	}
	if err != nil {
		return nil, err
	}
	s.publish(change{resource: resource, old: old, object: stored})
	return stored, nil
}

// remove removes an object without finalizers, first its file.
func (s *Store) remove(resource schema.GroupVersionResource, old client.Object) error {
	if s.rules != nil {
		if err := s.rules.ValidateDelete(old); err != nil {
			return err
		}
	}
	if err := os.Remove(s.path(resource, old.GetNamespace(), old.GetName())); err != nil {
		return fmt.Errorf("removing %s %s: %w", resource.Resource, old.GetName(), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ObjectTracker.Delete(resource, old.GetNamespace(), old.GetName()); err != nil {
		return err
	}
	s.publish(change{resource: resource, old: old})
	return nil
}

// withoutVersion returns a copy of an object without its resource version and the times of its field managers, which each write sets.
func withoutVersion(object client.Object) runtime.Object {
	bare := object.DeepCopyObject()
	if object, ok := bare.(client.Object); ok {
		object.SetResourceVersion("")
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		managers := object.GetManagedFields()
		for i := range managers {
			managers[i].Time = nil
		}
		object.SetManagedFields(managers)
	}
	return bare
}

// fieldManager merges changes into objects of one kind and records the owner of each field, for server-side apply.
type fieldManager struct {
	*managedfields.FieldManager

	scheme *runtime.Scheme
	kind   schema.GroupVersionKind
}

// fieldManager returns the field manager of a resource. The caller holds writing.
func (s *Store) fieldManager(resource schema.GroupVersionResource) (fieldManager, error) {
	if known, ok := s.fields[resource]; ok {
		return known, nil
	}
	kind, err := s.kindOf(resource)
	if err != nil {
		return fieldManager{}, err
	}
	fields, err := managedfields.NewDefaultFieldManager(s.types, s.scheme, noDefaults{}, s.scheme, kind, kind.GroupVersion(), "", nil)
	if err != nil {
		return fieldManager{}, fmt.Errorf("managing the fields of %s: %w", kind.Kind, err)
	}
	s.fields[resource] = fieldManager{FieldManager: fields, scheme: s.scheme, kind: kind}
	return s.fields[resource], nil
}

// noDefaults leaves defaults to admit.
type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

// update returns the object that replaces old, which may be nil.
func (f fieldManager) update(old client.Object, object runtime.Object, owner string) (runtime.Object, error) {
	live, err := f.live(old)
	if err != nil {
		return nil, err
	}
	wanted := object.DeepCopyObject()
	wanted.GetObjectKind().SetGroupVersionKind(f.kind)
	return f.Update(live, wanted, owner)
}

// apply returns old, which may be nil, with the configuration applied to it.
func (f fieldManager) apply(old client.Object, configuration runtime.Object, options metav1.PatchOptions) (runtime.Object, error) {
	live, err := f.live(old)
	if err != nil {
		return nil, err
	}
	return f.Apply(live, configuration, options.FieldManager, options.Force != nil && *options.Force)
}

// live returns a copy of old, or an empty object if it is nil.
func (f fieldManager) live(old client.Object) (runtime.Object, error) {
	if old != nil {
		return old.DeepCopyObject(), nil
	}
	empty, err := f.scheme.New(f.kind)
	if err != nil {
		return nil, fmt.Errorf("creating an empty %s: %w", f.kind.Kind, err)
	}
	empty.GetObjectKind().SetGroupVersionKind(f.kind)
	return empty, nil
}

// only returns the one element of variadic options, or the zero value.
func only[T any](options []T) (option T) {
	if len(options) > 0 {
		option = options[0]
	}
	return option
}
