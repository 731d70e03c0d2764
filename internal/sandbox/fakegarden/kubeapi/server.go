package kubeapi

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Kind is a kind of object that a server serves. The resource name is the lower-case plural of the kind.
type Kind struct {
	schema.GroupVersionKind

	Namespaced bool
	// ReadOnly means that clients can only get, list and watch objects of this kind. A read-only kind has no objects, except those
	// that an earlier version of the program has stored.
	ReadOnly bool
	// Review means that clients can only create objects of this kind, such as TokenReviews, and that the server does not store them.
	// The handler for the resource name in Options.Subresources returns the response.
	Review bool
	// ShortNames and Categories are names that clients accept instead of the resource, such as the short name ns for namespaces, or
	// the category all.
	ShortNames []string
	Categories []string
	// Status means that only requests for the status subresource can change the Status field. The kind must be a Go type with this
	// field.
	Status bool
	// Custom means that real API servers know the kind from a CustomResourceDefinition. They therefore do not support strategic
	// merge patches for it.
	Custom bool
}

// Resource returns the kind's API resource, such as configmaps.
func (k Kind) Resource() schema.GroupVersionResource {
	resource, _ := meta.UnsafeGuessKindToResource(k.GroupVersionKind)
	return resource
}

// verbs returns the verbs that discovery lists for the kind.
func (k Kind) verbs() metav1.Verbs {
	switch {
	case k.ReadOnly:
		return metav1.Verbs{"get", "list", "watch"}
	case k.Review:
		return metav1.Verbs{"create"}
	}
	return metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
}

// plural returns the resource without its version, as used in error messages.
func (k Kind) plural() schema.GroupResource { return k.Resource().GroupResource() }

// Subresource handles a POST request for a subresource of an object. The object need not exist. decode decodes the request body;
// it returns an error if the body has a different kind than into. The result is the response body.
type Subresource func(ctx context.Context, key client.ObjectKey, decode func(into runtime.Object) error) (runtime.Object, error)

// Completing returns a Subresource whose request and response are the same object. complete sets the fields of the response.
func Completing[T any, Object interface {
	*T
	runtime.Object
}](complete func(ctx context.Context, key client.ObjectKey, object Object) error) Subresource {
	return func(ctx context.Context, key client.ObjectKey, decode func(into runtime.Object) error) (runtime.Object, error) {
		object := Object(new(T))
		if err := decode(object); err != nil {
			return nil, err
		}
		return object, complete(ctx, key, object)
	}
}

// Options configures a server.
type Options struct {
	// Scheme contains the kinds and their defaults, as Go types or as unstructured.Unstructured.
	Scheme *runtime.Scheme
	Kinds  []Kind
	// Dir is the folder for the object files. Only this server may use it. Open creates a missing folder.
	Dir string
	// Version returns the Kubernetes version that the server reports, such as 1.35.4. If it is nil or returns an empty string, the
	// version numbers in the /version response are empty.
	Version func(ctx context.Context) string
	// Admit completes and validates a change before it is stored. old is nil for a creation. object is nil for the removal of an
	// object that has no finalizers left. Admit may modify object but not old, and may increment the generation. It must use the
	// reader objects to read other objects: a request to the server would deadlock, because the change holds the lock. If Admit is
	// nil, every change is accepted.
	Admit func(ctx context.Context, objects client.Reader, old, object client.Object) error
	// Defers reports whether controllers act on a change of the spec only later, so that the change leaves the generation as it is. If
	// it is nil, each change increments the generation.
	Defers func(old, object client.Object) bool
	// Authorize rejects requests for objects of a kind. If it is nil, every request is accepted.
	Authorize func(r *http.Request, kind Kind) error
	// Subresources contains the handlers of subresources other than status, keyed by name, such as "serviceaccounts/token". It also
	// contains the handlers of reviews, such as "tokenreviews".
	Subresources map[string]Subresource
	// Types determines which parts of an object have separate owners in server-side apply. By default, the type is deduced from the
	// object: each field of a map has its own owner, and a list has one owner as a whole.
	Types managedfields.TypeConverter
}

// Server is a Kubernetes API server in one process. It is safe for concurrent use.
type Server struct {
	options   Options
	decoder   runtime.Decoder
	resources map[schema.GroupVersionResource]*resource
	documents map[string]any

	// writing serializes changes, from reading the old object to storing the new one. Readers do not lock it. It must be locked
	// before mu.
	writing sync.Mutex
	// mu guards version, history and the objects of all resources, so that lists and watches see a consistent state.
	mu      sync.RWMutex
	version uint64
	history history
}

var (
	_ client.Reader = (*Server)(nil)
	_ http.Handler  = (*Server)(nil)
)

// resource is a served kind with its objects. Server.resources needs no lock, because the map does not change after Open.
type resource struct {
	Kind

	// objects is keyed by namespace and name. Server.mu guards it.
	objects map[types.NamespacedName]object
	// fields returns the field manager, which merges changes. Creating a field manager is slow, so it is created only when the first
	// object of the kind changes.
	fields func() (*managedfields.FieldManager, error)
}

// object is a stored object. If the embedded Object is nil, there is no object. Objects are immutable: a change replaces the
// object, so readers share it without a lock.
type object struct {
	client.Object

	// content is the JSON of the object for responses, with the kind and without managed fields.
	content []byte
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) { return o.content, nil }

// Open loads the objects of a server from its folder. It fails if it cannot decode a file, so that no object is lost silently.
// Only one process may use the folder at a time; the server does not lock the folder.
func Open(options Options) (*Server, error) {
	s := &Server{
		options:   options,
		decoder:   serializer.NewCodecFactory(options.Scheme).UniversalDeserializer(),
		resources: map[schema.GroupVersionResource]*resource{},
		documents: discovery(options.Kinds),
	}
	if s.options.Types == nil {
		s.options.Types = managedfields.NewDeducedTypeConverter()
	}
	for _, kind := range options.Kinds {
		s.resources[kind.Resource()] = &resource{
			Kind: kind, objects: map[types.NamespacedName]object{}, fields: sync.OnceValues(s.newFieldManager(kind.GroupVersionKind)),
		}
	}
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("reading the objects in %s: %w", options.Dir, err)
	}
	s.history = history{since: s.version, waiting: map[chan struct{}]bool{}}
	return s, nil
}

// Get implements client.Reader without sending a request. It returns an error that satisfies apierrors.IsNotFound if there is no
// object with the given key. It ignores options. into must have the Go type of the kind.
func (s *Server) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	resource, err := s.resourceOf(into)
	if err != nil {
		return err
	}
	found, err := s.existing(resource, key)
	if err != nil {
		return err
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
	return nil
}

// List implements client.Reader without sending a request. It returns all objects of a kind, sorted by namespace and name. It
// ignores options.
func (s *Server) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	resource, err := s.resourceOf(into)
	if err != nil {
		return err
	}
	found, _ := s.selected(resource, func(client.Object) bool { return true })
	items := make([]runtime.Object, len(found))
	for i, object := range found {
		items[i] = object.DeepCopyObject()
	}
	return meta.SetList(into, items)
}

// resourceOf returns the resource of an object or a list. It returns an error if the server does not serve its kind.
func (s *Server) resourceOf(object runtime.Object) (*resource, error) {
	kind, err := apiutil.GVKForObject(object, s.options.Scheme)
	if err != nil {
		return nil, fmt.Errorf("finding the kind of %T: %w", object, err)
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	resource := s.resources[Kind{GroupVersionKind: kind}.Resource()]
	if resource == nil {
		return nil, fmt.Errorf("the server does not serve %s", kind)
	}
	return resource, nil
}
