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
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/atomicfile"
)

// create stores a new object. The body names it: the server generates no names, so metadata.generateName is an invalid empty
// name. Of several concurrent creations of a name, exactly one succeeds.
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

// update replaces an object. As on a real API server, only the kinds of Kubernetes itself can be updated without a resource
// version. Custom resources and the kinds of Gardener need one, because an update without a version would silently undo the
// changes of others.
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

// patch changes an object by a merge patch or by server-side apply. Only the latter creates a missing object. JSON patches and
// strategic merge patches are 415: no part of the project sends them to a garden or a runtime.
func (s *Server) patch(r *request) (int, any, error) {
	body, err := r.body()
	if err != nil {
		return 0, nil, err
	}
	switch r.Header.Get("Content-Type") {
	case string(types.ApplyPatchType):
		return s.apply(r, body)
	case string(types.MergePatchType):
		stored, err := s.replace(r, func(old object) (client.Object, error) { return s.patched(r, old, body) })
		return http.StatusOK, stored, err
	}
	return 0, nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", r.resource.plural(), r.key.Name,
		"the server supports merge patches and server-side apply only", 0, true)
}

// patched returns an object with a merge patch (RFC 7386) applied to it. The patch applies to the JSON of responses, which has no
// managed fields; the field manager then takes them from the stored object. A patch that contains a resource version is
// conditional, because the version becomes a part of the patched object. The library is that of kube-apiserver, so that both order the keys of
// a RawExtension in the same way.
func (s *Server) patched(r *request, old object, patch []byte) (client.Object, error) {
	if old.Object == nil {
		return nil, apierrors.NewNotFound(r.resource.plural(), r.key.Name)
	}
	merged, err := jsonpatch.MergePatch(old.content, patch)
	if err != nil {
		return nil, apierrors.NewBadRequest("the merge patch cannot be applied: " + err.Error())
	}
	object, err := s.empty(r.resource)
	if err != nil {
		return nil, err
	}
	if err := s.decode(merged, r.resource.GroupVersionKind, object); err != nil {
		return nil, err
	}
	return object, r.place(object)
}

// apply performs server-side apply. If the configuration has a resource version, it must be the present one. A field that another
// manager owns with another value is a conflict, unless the request has force=true: then the ownership changes.
func (s *Server) apply(r *request, body []byte) (int, any, error) {
	applied := &unstructured.Unstructured{}
	if yaml.Unmarshal(body, &applied.Object) != nil || applied.GroupVersionKind() != r.resource.GroupVersionKind {
		return 0, nil, wrongBody(r.resource.GroupVersionKind)
	}
	if err := r.place(applied); err != nil {
		return 0, nil, err
	}
	code := http.StatusOK
	stored, err := s.change(r, func(fields *managedfields.FieldManager, old object, live runtime.Object) (runtime.Object, error) {
		if version := applied.GetResourceVersion(); version != "" && (old.Object == nil || version != old.GetResourceVersion()) {
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

// replace stores the object that wanted returns in place of the stored one, which is none if it does not exist. wanted must not
// modify old. An object with an outdated resource version is a conflict.
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

// modified returns the conflict of a change that was made from an outdated version of an object.
func (r *request) modified() error {
	return apierrors.NewConflict(r.resource.plural(), r.key.Name,
		errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

// restrict returns the changed object without the changes that the request must not make: a request for the subresource status
// changes the status alone, any other request all but the status. Clients send whole objects, so the other part is ignored rather
// than rejected, as by a real API server. It modifies changed.
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

// merge returns the object that results from a change of old, which is none for a new object. live is a copy of old, or an empty
// object. fields records who owns the changed fields.
type merge func(fields *managedfields.FieldManager, old object, live runtime.Object) (runtime.Object, error)

// change merges the change of a request into its object, admits the result and stores it. A dry run stores nothing.
//
// It holds writing from the read of the stored object to the end. Two changes of an object therefore never start from the same
// version, and the rules of Admit see the state in which the change takes effect.
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

// write admits an object and stores it, unless it is a dry run or nothing has changed: an unchanged object keeps its resource
// version, so that idle controllers cause no events. A deleted object without finalizers is removed.
//
// The file is written before the object becomes visible. If the process dies in between, the restarted server has the change, as
// if the process had died right after it. The caller holds writing.
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

// remove deletes an object. If the preconditions have a UID or a resource version, a different one is a conflict. An object with
// finalizers gets a deletion timestamp; the change that removes its last finalizer removes the object. All other options are
// ignored: the server has no dependent objects to which a deletion could propagate, and no grace period.
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
			return 0, nil, apierrors.NewConflict(r.resource.plural(), r.key.Name, errors.New("the object has another UID"))
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

// erase removes an object without finalizers, first its file: a process that dies in between does not bring the object back. The
// caller holds writing.
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

// newFieldManager returns a constructor of the field manager of a kind. A field manager needs no lock: the changes that use it
// are serialized.
func (s *Server) newFieldManager(kind schema.GroupVersionKind) func() (*managedfields.FieldManager, error) {
	return func() (*managedfields.FieldManager, error) {
		scheme := s.options.Scheme
		return managedfields.NewDefaultFieldManager(s.options.Types, scheme, noDefaults{}, scheme, kind, kind.GroupVersion(), "", nil)
	}
}

// noDefaults leaves the defaults of a kind to admit, so that no manager owns them.
type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

// admit completes and checks an object before it is stored: its metadata, the defaults of its kind, and the rules of
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
	raiseGeneration(old, object)
	return nil
}

// setMetadata sets the fields that clients cannot choose: UID, times and generation. It rejects names that are not DNS names,
// which also keeps the files inside the folder of the server. Times have no fraction of a second, which the file would lose.
// A deletion timestamp, once set, cannot be removed.
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

// raiseGeneration raises the generation for a change of the spec or the start of a deletion, unless Admit has raised it already.
// Kinds without a spec have no generation. Controllers compare the generation with the one that they have observed, so a change of
// metadata or status must not raise it.
func raiseGeneration(old, object client.Object) {
	spec := reflectField(object, "Spec")
	if old == nil || !spec.IsValid() || object.GetGeneration() != old.GetGeneration() {
		return
	}
	starts := old.GetDeletionTimestamp() == nil && object.GetDeletionTimestamp() != nil
	if starts || !apiequality.Semantic.DeepEqual(reflectField(old, "Spec").Interface(), spec.Interface()) {
		object.SetGeneration(old.GetGeneration() + 1)
	}
}

// reflectField returns a field of a Go type, the zero Value if its kind has none.
func reflectField(object client.Object, name string) reflect.Value {
	return reflect.ValueOf(object).Elem().FieldByName(name)
}

func reflectStatus(object client.Object) reflect.Value { return reflectField(object, "Status") }

// mergeStringData moves the strings of a Secret to its data, as the API server does. A string replaces the data of the same key.
func mergeStringData(secret *corev1.Secret) {
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}
