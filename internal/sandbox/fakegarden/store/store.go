package store

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Rules complete changes and refuse those that an API server would refuse, with the errors that it would give.
type Rules interface {
	// Default completes a new or changed object; old is nil for a new one. It may raise the generation.
	Default(old, object client.Object) error
	// Validate refuses a new or changed object, which is complete, by an error.
	Validate(old, object client.Object) error
	// ValidateDelete refuses that an object, which has no finalizer to wait for any more, goes.
	ValidateDelete(object client.Object) error
}

// Reader finds stored objects. Rules have to use it, because the client waits for them.
type Reader interface {
	// Lookup reads the object of that key; the error tells a missing one as an API server does.
	Lookup(key client.ObjectKey, into client.Object) error
	// LookupAll reads all objects of a kind that have no namespace.
	LookupAll(into client.ObjectList) error
}

// Options say what a store holds and where.
type Options struct {
	Scheme *runtime.Scheme
	// Dir is the folder of the files, which belongs to the store alone. It is made if it is missing.
	Dir string
	// Rules returns the rules of the store, which read in it.
	Rules func(objects Reader) Rules
}

// Store keeps objects in memory and in files. It is safe for concurrent use.
type Store struct {
	scheme *runtime.Scheme
	decode runtime.Decoder
	rules  Rules
	files  files
	// converter is for server-side apply.
	converter converter
	// writing is held while a change is prepared and made, so that there is one at a time.
	writing sync.Mutex
	mergers map[schema.GroupVersionResource]merger
	// mu guards the state that readers see.
	mu      sync.RWMutex
	objects testing.ObjectTracker
	version uint64
	feed    feed
}

var _ testing.ObjectTracker = (*Store)(nil)

// Open reads what the files hold.
func Open(options Options) (*Store, error) {
	converter, err := newConverter()
	if err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(options.Scheme)
	s := &Store{
		scheme:    options.Scheme,
		decode:    codecs.UniversalDeserializer(),
		files:     files{dir: options.Dir},
		converter: converter,
		mergers:   map[schema.GroupVersionResource]merger{},
		objects:   testing.NewObjectTracker(options.Scheme, codecs.UniversalDecoder()),
		feed:      newFeed(),
	}
	s.rules = options.Rules(s)
	if err := s.files.load(s.restore); err != nil {
		return nil, err
	}
	s.feed.since = s.version
	return s, nil
}

// restore takes over an object from its file.
func (s *Store) restore(content []byte) error {
	object, err := s.decoded(content)
	if err != nil {
		return err
	}
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return fmt.Errorf("read the resource version of %s: %w", object.GetName(), err)
	}
	s.version = max(s.version, version)
	return s.objects.Add(object)
}

func (s *Store) decoded(content []byte) (client.Object, error) {
	decoded, _, err := s.decode.Decode(content, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decode a stored object: %w", err)
	}
	object, ok := decoded.(client.Object)
	if !ok {
		return nil, fmt.Errorf("decode a stored object: %T has no metadata", decoded)
	}
	return object, nil
}

// Lookup implements Reader.
func (s *Store) Lookup(key client.ObjectKey, into client.Object) error {
	resource, err := s.resourceOf(into)
	if err != nil {
		return err
	}
	found, err := s.Get(resource, key.Namespace, key.Name)
	if err != nil {
		return err
	}
	return copyInto(found, into)
}

// LookupAll implements Reader.
func (s *Store) LookupAll(into client.ObjectList) error {
	kind, err := apiutil.GVKForObject(into, s.scheme)
	if err != nil {
		return fmt.Errorf("find the kind of %T: %w", into, err)
	}
	kind.Kind = kind.Kind[:len(kind.Kind)-len("List")]
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	found, err := s.List(resource, kind, "")
	if err != nil {
		return err
	}
	return copyInto(found, into)
}

func (s *Store) resourceOf(object runtime.Object) (schema.GroupVersionResource, error) {
	kind, err := apiutil.GVKForObject(object, s.scheme)
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("find the kind of %T: %w", object, err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return resource, nil
}

// Get implements testing.ObjectTracker.
func (s *Store) Get(
	resource schema.GroupVersionResource, namespace, name string, options ...metav1.GetOptions,
) (runtime.Object, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects.Get(resource, namespace, name, options...)
}

// List implements testing.ObjectTracker.
func (s *Store) List(
	resource schema.GroupVersionResource, kind schema.GroupVersionKind, namespace string, options ...metav1.ListOptions,
) (runtime.Object, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects.List(resource, kind, namespace, options...)
}

// Version returns the resource version of the last change. A watch that begins there shows what comes after.
func (s *Store) Version() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return strconv.FormatUint(s.version, 10)
}

// Add implements testing.ObjectTracker, but is not supported: it would pass by the rules.
func (s *Store) Add(runtime.Object) error {
	return errors.New("objects are added by Create")
}

// find returns the stored object, nil if there is none.
func (s *Store) find(resource schema.GroupVersionResource, namespace, name string) (client.Object, error) {
	found, err := s.Get(resource, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	object, ok := found.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T has no metadata", found)
	}
	return object, nil
}
