package kubeapi

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Kind is a kind of objects that a server serves. The name of its resource is the plural of the kind in lower case.
type Kind struct {
	schema.GroupVersionKind

	Namespaced bool
	// Status is true if only the subresource status changes the field Status. The kind needs a Go type with this field.
	Status bool
}

// Resource returns the resource of the kind, such as configmaps.
func (k Kind) Resource() schema.GroupVersionResource {
	resource, _ := meta.UnsafeGuessKindToResource(k.GroupVersionKind)
	return resource
}

// plural returns the resource without its version, as errors name it.
func (k Kind) plural() schema.GroupResource { return k.Resource().GroupResource() }

// Subresource answers a POST request for a subresource of an object, which need not exist. decode reads the body of the request, which must be
// of the kind of into. The result is the body of the response.
type Subresource func(ctx context.Context, key client.ObjectKey, decode func(into runtime.Object) error) (runtime.Object, error)

// Options configure a server.
type Options struct {
	// Scheme knows the kinds and their defaults, as Go types or as unstructured.Unstructured.
	Scheme *runtime.Scheme
	Kinds  []Kind
	// Dir is the folder of the files, which belongs to this server alone. Open creates a missing folder.
	Dir string
	// Version returns the version of Kubernetes that the server reports, such as 1.35.4. An empty string means that the
	// version is unknown: /version then reports no numbers.
	Version func(ctx context.Context) string
	// Admit completes and checks a change before it is stored. old is nil for a creation, object is nil for the removal of an object that has
	// no finalizers left. Admit may modify object, not old, and may raise the generation. objects reads the present state; a client of the
	// server would block, because the change holds its lock. Without Admit the server accepts every change.
	Admit func(ctx context.Context, objects client.Reader, old, object client.Object) error
	// Authorize rejects requests for objects of a kind. Without it the server accepts every request.
	Authorize func(r *http.Request, kind Kind) error
	// Subresources has the subresources besides status, such as "serviceaccounts/token".
	Subresources map[string]Subresource
	// Types defines which parts of an object have an owner in server-side apply. By default they are deduced from the object: each field
	// of a map has an owner, a list has one as a whole.
	Types managedfields.TypeConverter
}

// Server is a Kubernetes API server in one process. It is safe for concurrent use.
type Server struct {
	options   Options
	decoder   runtime.Decoder
	resources map[schema.GroupVersionResource]*resource
	documents map[string]any

	// writing serializes changes, from reading the old object to storing the new one. Readers do not need it. It is locked before mu.
	writing sync.Mutex
	// mu guards version, history and the objects of all resources, so that a list or a watch sees the objects of one version.
	mu      sync.RWMutex
	version uint64
	history history
}

var (
	_ client.Reader = (*Server)(nil)
	_ http.Handler  = (*Server)(nil)
)

// resource is a served kind with its objects. The set of resources never changes after Open, so its map needs no lock.
type resource struct {
	Kind

	// objects has the objects by key. Server.mu guards it.
	objects map[types.NamespacedName]object
	// fields returns the field manager, which merges changes. The first change creates it, because that takes as long as the change itself.
	fields func() (*managedfields.FieldManager, error)
}

// object is a stored object, or none if the interface is nil. It is never modified: a change replaces it, so readers share it without a lock.
type object struct {
	client.Object

	// content is the JSON of the object in responses, with its kind and without its managed fields.
	content []byte
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) { return o.content, nil }

// Open reads the objects of a server from its folder. It fails for a file that it cannot decode, rather than
// losing the object silently. Only one process may use a folder at a time; the server does not lock the folder.
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

// Get implements client.Reader without a request: it reads the object with the key, or returns an error that is apierrors.IsNotFound. It
// ignores options, and into must have the Go type of the kind.
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

// List implements client.Reader without a request: it reads all objects of a kind in the order of their keys. It ignores options.
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

// resourceOf returns the resource of an object or of a list.
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
