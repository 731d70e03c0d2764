package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/program/atomicfile"
)

// create stores a new object. The body must contain the name: the server does not generate names, so an object that sets only
// metadata.generateName is invalid. If several requests create objects with the same name concurrently, exactly one succeeds.
func (s *Server) create(r *request) (int, any, error) {
	given, err := s.readObject(r)
	if err != nil {
		return 0, nil, err
	}
	stored, err := s.replace(r, func(old object) (client.Object, error) {
		switch {
		case old.Object != nil:
			return nil, apierrors.NewAlreadyExists(r.resource.plural(), r.key.Name)
		case given.GetResourceVersion() != "":
			return nil, apierrors.NewBadRequest("resourceVersion must not be set on objects to be created")
		}
		return given, nil
	})
	return http.StatusCreated, stored, err
}

// update replaces an object. As on a real API server, only Kubernetes' built-in kinds can be updated without a resource version.
// Custom resources and Gardener's kinds require a version, because an update without one would silently undo changes by other
// clients.
func (s *Server) update(r *request) (int, any, error) {
	given, err := s.readObject(r)
	if err != nil {
		return 0, nil, err
	}
	stored, err := s.replace(r, func(old object) (client.Object, error) {
		switch {
		case old.Object == nil:
			return nil, apierrors.NewNotFound(r.resource.plural(), r.key.Name)
		case given.GetResourceVersion() == "" && r.resource.Group != "" && !strings.HasSuffix(r.resource.Group, ".k8s.io"):
			return nil, apierrors.NewInvalid(r.resource.GroupKind(), r.key.Name, field.ErrorList{
				field.Invalid(field.NewPath("metadata", "resourceVersion"), "", "must be specified for an update"),
			})
		}
		return given, nil
	})
	return http.StatusOK, stored, err
}

// patch changes an object by a merge patch, a strategic merge patch or server-side apply. Only server-side apply creates a
// missing object. As on a real API server, custom resources do not support strategic merge patches. On this server, kinds without
// a Go type do not support them either. JSON patches return 415, because this project sends none to a garden or a runtime.
func (s *Server) patch(r *request) (int, any, error) {
	body, err := r.body()
	if err != nil {
		return 0, nil, err
	}
	merge := jsonpatch.MergePatch
	switch r.Header.Get("Content-Type") {
	case string(types.ApplyPatchType):
		return s.apply(r, body)
	case string(types.MergePatchType):
	case string(types.StrategicMergePatchType):
		typed, err := s.empty(r.resource)
		if err != nil {
			return 0, nil, err
		}
		if _, untyped := typed.(runtime.Unstructured); untyped || r.resource.Custom {
			return 0, nil, r.unsupportedPatch()
		}
		merge = func(document, patch []byte) ([]byte, error) {
			return strategicpatch.StrategicMergePatch(document, patch, typed)
		}
	default:
		return 0, nil, r.unsupportedPatch()
	}
	stored, err := s.replace(r, func(old object) (client.Object, error) { return s.patched(r, old, body, merge) })
	return http.StatusOK, stored, err
}

// unsupportedPatch returns a 415 error.
func (r *request) unsupportedPatch() error {
	return apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", r.resource.plural(), r.key.Name,
		"the server does not support this kind of patch for this kind of object", 0, true)
}

// patched returns an object with a patch applied by merge. It patches the JSON that responses contain, which has no managed
// fields; the field manager takes the managed fields from the stored object. A resource version in the patch becomes part of the
// patched object and makes the patch conditional. kube-apiserver uses the same patch library, so both order the keys of a
// RawExtension in the same way.
func (s *Server) patched(r *request, old object, patch []byte, merge func(document, patch []byte) ([]byte, error)) (client.Object, error) {
	if old.Object == nil {
		return nil, apierrors.NewNotFound(r.resource.plural(), r.key.Name)
	}
	merged, err := merge(old.content, patch)
	if err != nil {
		return nil, apierrors.NewBadRequest("the patch cannot be applied: " + err.Error())
	}
	object, err := s.empty(r.resource)
	if err != nil {
		return nil, err
	}
	if err := s.decode(merged, r.resource.GroupVersionKind, object); err != nil {
		return nil, err
	}
	return object, r.setNamespace(object)
}

// apply performs server-side apply. If the applied configuration has a resource version, it must be the current one. Setting a
// field of another manager to a different value is a conflict. With force=true, the field manager of the request becomes the
// owner of the field instead.
func (s *Server) apply(r *request, body []byte) (int, any, error) {
	applied := &unstructured.Unstructured{}
	if yaml.Unmarshal(body, &applied.Object) != nil || applied.GroupVersionKind() != r.resource.GroupVersionKind {
		return 0, nil, invalidBody(r.resource.GroupVersionKind)
	}
	if err := r.setNamespace(applied); err != nil {
		return 0, nil, err
	}
	code := http.StatusOK
	stored, err := s.change(r, func(fields *managedfields.FieldManager, old object, live runtime.Object) (runtime.Object, error) {
		if version := applied.GetResourceVersion(); version != "" && old.Object != nil && version != old.GetResourceVersion() {
			return nil, r.modified()
		}
		if old.Object == nil {
			code = http.StatusCreated
		}
		merged, err := fields.Apply(live, applied, r.query.Get("fieldManager"), r.query.Get("force") == "true")
		if err != nil {
			return nil, err
		}
		return r.restrict(old, merged)
	})
	return code, stored, err
}

// replace stores the object that wanted returns. wanted receives the stored object, or an empty one if there is none, and must
// not modify it. If the returned object has an outdated resource version, replace returns a conflict.
func (s *Server) replace(r *request, wanted func(old object) (client.Object, error)) (object, error) {
	return s.change(r, func(fields *managedfields.FieldManager, old object, live runtime.Object) (runtime.Object, error) {
		given, err := wanted(old)
		if err != nil {
			return nil, err
		}
		if version := given.GetResourceVersion(); version != "" && version != old.GetResourceVersion() {
			return nil, r.modified()
		}
		limited, err := r.restrict(old, given)
		if err != nil {
			return nil, err
		}
		return fields.Update(live, limited, r.query.Get("fieldManager"))
	})
}

// modified returns a conflict error for a change that is based on an outdated version of an object.
func (r *request) modified() error {
	return apierrors.NewConflict(r.resource.plural(), r.key.Name,
		errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

// restrict undoes changes that the request may not make. If the kind has a status subresource, a request for the subresource can
// change only the status, and any other request can change everything except the status. As on a real API server, other changes
// are ignored instead of rejected, because clients send whole objects. restrict may modify changed.
func (r *request) restrict(old object, changed runtime.Object) (client.Object, error) {
	limited, err := asObject(changed)
	if err != nil || !r.resource.Status {
		return limited, err
	}
	present := reflectStatus(limited)
	switch {
	case r.subresource == "" && old.Object == nil:
		present.SetZero()
	case r.subresource == "":
		present.Set(reflectStatus(copyOf(old)))
	case old.Object == nil:
		return nil, apierrors.NewNotFound(r.resource.plural(), r.key.Name)
	default:
		whole := copyOf(old)
		whole.SetManagedFields(limited.GetManagedFields())
		reflectStatus(whole).Set(present)
		return whole, nil
	}
	return limited, nil
}

// merge returns the object that results from a change. old is the stored object, or empty for a new one; live is a copy of old,
// or an empty object. fields records the owners of the changed fields.
type merge func(fields *managedfields.FieldManager, old object, live runtime.Object) (runtime.Object, error)

// change merges a change into the stored object, admits the result and stores it. A dry run stores nothing.
//
// change holds Server.writing for its whole duration. Two changes of an object therefore never start from the same version, and
// the rules in Admit see the state to which the change applies.
func (s *Server) change(r *request, merge merge) (object, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	fields, err := r.resource.fields()
	if err != nil {
		return object{}, err
	}
	live, err := s.empty(r.resource)
	if err != nil {
		return object{}, err
	}
	old := s.find(r.resource, r.key)
	if old.Object != nil {
		live = copyOf(old)
	}
	merged, err := merge(fields, old, live)
	if err != nil {
		return object{}, err
	}
	changed, err := asObject(merged)
	if err != nil {
		return object{}, err
	}
	return s.write(r, old, changed)
}

// write admits an object and stores it, unless the request is a dry run or nothing has changed. An unchanged object keeps its
// resource version, so that repeated writes by controllers do not cause events. If the object is marked for deletion and has no
// finalizers, write removes it.
//
// write stores the file before the object becomes visible. If the process dies in between, the change still takes effect: it is
// in the file when the server restarts. The caller must hold Server.writing.
func (s *Server) write(r *request, old object, changed client.Object) (object, error) {
	if err := s.admit(r.Context(), old.Object, changed); err != nil {
		return object{}, err
	}
	changed.GetObjectKind().SetGroupVersionKind(r.resource.GroupVersionKind)
	if r.dryRun() {
		return responseObject(changed)
	}
	if old.Object != nil && changed.GetDeletionTimestamp() != nil && len(changed.GetFinalizers()) == 0 {
		if err := s.erase(r, old); err != nil {
			return object{}, err
		}
		return responseObject(changed)
	}
	changed.SetResourceVersion(formatVersion(s.version + 1))
	file, err := encoded(changed)
	if err != nil {
		return object{}, err
	}
	stored, err := s.decodeFile(file)
	if err != nil {
		return object{}, err
	}
	if old.Object != nil && apiequality.Semantic.DeepEqual(withoutVersion(old), withoutVersion(stored)) {
		return old, nil
	}
	if err := atomicfile.Write(s.path(r.resource, stored), file); err != nil {
		return object{}, err
	}
	s.store(r.resource, old, stored)
	return stored, nil
}

// remove deletes an object. If the preconditions contain a different UID or resource version, it returns a conflict. If the
// object has finalizers, remove sets its deletion timestamp, and the change that removes the last finalizer also removes the
// object. Other options are ignored: the server has no dependent objects and no grace periods.
func (s *Server) remove(r *request) (int, any, error) {
	options, err := s.removeOptions(r)
	if err != nil {
		return 0, nil, err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	old, err := s.existing(r.resource, r.key)
	if err != nil {
		return 0, nil, err
	}
	if expected := options.Preconditions; expected != nil {
		if expected.UID != nil && *expected.UID != old.GetUID() {
			return 0, nil, apierrors.NewConflict(r.resource.plural(), r.key.Name, errors.New("the object has a different UID"))
		}
		if expected.ResourceVersion != nil && *expected.ResourceVersion != old.GetResourceVersion() {
			return 0, nil, r.modified()
		}
	}
	if len(old.GetFinalizers()) == 0 {
		err = s.erase(r, old)
	} else {
		deleted := copyOf(old)
		deleted.SetDeletionTimestamp(new(metav1.Now()))
		_, err = s.write(r, old, deleted)
	}
	return http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}, err
}

// erase removes an object without finalizers. It removes the file first, so that a restarted server does not restore the object.
// The caller must hold Server.writing.
func (s *Server) erase(r *request, old object) error {
	if s.options.Admit != nil {
		if err := s.options.Admit(r.Context(), s, old.Object, nil); err != nil {
			return err
		}
	}
	if err := os.Remove(s.path(r.resource, old)); err != nil {
		return fmt.Errorf("removing %s %s: %w", r.resource.Kind.Kind, old.GetName(), err)
	}
	s.store(r.resource, old, object{})
	return nil
}

// newFieldManager returns a function that creates the field manager of a kind. Field managers need no lock, because
// Server.writing serializes changes.
func (s *Server) newFieldManager(kind schema.GroupVersionKind) func() (*managedfields.FieldManager, error) {
	return func() (*managedfields.FieldManager, error) {
		scheme := s.options.Scheme
		return managedfields.NewDefaultFieldManager(s.options.Types, scheme, noDefaults{}, scheme, kind, kind.GroupVersion(), "", nil)
	}
}

// noDefaults applies no defaults during a merge: admit sets them later, so that no field manager owns them.
type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

// admit completes and validates an object before it is stored: its metadata, the defaults of its kind, and the rules in
// Options.Admit.
func (s *Server) admit(ctx context.Context, old, object client.Object) error {
	if secret, ok := object.(*corev1.Secret); ok {
		mergeStringData(secret)
	}
	if err := setMetadata(old, object); err != nil {
		return err
	}
	s.options.Scheme.Default(object)
	if s.options.Admit != nil {
		if err := s.options.Admit(ctx, s, old, object); err != nil {
			return err
		}
	}
	s.raiseGeneration(old, object)
	return nil
}

// setMetadata sets the fields that clients cannot choose: UID, times and generation. It rejects names that are not DNS names,
// which also ensures that file paths stay within the server's folder. The creation time is truncated to whole seconds, because
// object files contain no fractions of a second. A deletion timestamp cannot be removed.
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
	if reflectField(object, "Spec").IsValid() {
		object.SetGeneration(1)
	}
	return nil
}

// raiseGeneration increments the generation if the spec has changed or the deletion has started, unless Admit has incremented it
// already or Options.Defers holds the change back. Kinds without a spec have no generation. A change of metadata or status must not
// increment it, because controllers compare the generation with the one that they observed.
func (s *Server) raiseGeneration(old, object client.Object) {
	spec := reflectField(object, "Spec")
	if old == nil || !spec.IsValid() || object.GetGeneration() != old.GetGeneration() {
		return
	}
	starts := old.GetDeletionTimestamp() == nil && object.GetDeletionTimestamp() != nil
	deferred := s.options.Defers != nil && s.options.Defers(old, object)
	if starts || !deferred && !apiequality.Semantic.DeepEqual(reflectField(old, "Spec").Interface(), spec.Interface()) {
		object.SetGeneration(old.GetGeneration() + 1)
	}
}

// reflectField returns a field of a Go type, or the zero Value if the type does not have the field.
func reflectField(object client.Object, name string) reflect.Value {
	return reflect.ValueOf(object).Elem().FieldByName(name)
}

func reflectStatus(object client.Object) reflect.Value { return reflectField(object, "Status") }

// mergeStringData moves a Secret's stringData to data, as a real API server does. It overwrites existing keys.
func mergeStringData(secret *corev1.Secret) {
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}
