package store

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Rules complete changes and reject those that an API server would reject, with the errors that it would return.
type Rules interface {
	// Default completes a new or changed object; old is nil for a new one. It may raise the generation.
	Default(old, object client.Object) error
	// Validate rejects a new or changed object, which is complete.
	Validate(old, object client.Object) error
	// ValidateDelete rejects the removal of an object that has no finalizers left.
	ValidateDelete(object client.Object) error
}

// Reader reads stored objects. Rules read with it, because a client would wait for the change that they check.
type Reader interface {
	// Lookup reads the object with the key, or returns an error that is apierrors.IsNotFound.
	Lookup(key client.ObjectKey, into client.Object) error
	// LookupAll reads all objects of a kind, in all namespaces.
	LookupAll(into client.ObjectList) error
}

// Options configure a store.
type Options struct {
	// Scheme knows the kinds of the objects and their defaults.
	Scheme *runtime.Scheme
	// Dir is the folder of the files, which belongs to the store alone. It is created if it is missing.
	Dir string
	// Rules returns the rules of the store. Without it every change is accepted.
	Rules func(objects Reader) Rules
	// Types defines which parts of an object have an owner in server-side apply. By default they are deduced from the object: each field
	// of a map has an owner, a list has one as a whole.
	Types managedfields.TypeConverter
}

// Store keeps objects in memory and in files. It is safe for concurrent use.
type Store struct {
	// ObjectTracker holds the objects and answers Get and List. Its writing methods are replaced by those of Store.
	testing.ObjectTracker

	scheme *runtime.Scheme
	decode runtime.Decoder
	rules  Rules
	types  managedfields.TypeConverter
	dir    string

	// writing serializes changes, from reading the old object to storing the new one. Readers do not need it. It is locked before mu.
	writing sync.Mutex
	// fields caches the field manager of each changed resource: creating one takes as long as a change. writing guards it.
	fields map[schema.GroupVersionResource]fieldManager

	// mu guards version and history. It is held while the objects change, so that a watch sees a list and its version in a consistent state.
	mu      sync.RWMutex
	version uint64
	history history
}

var _ testing.ObjectTracker = (*Store)(nil)

// Open reads the objects of a store from its folder. A file that cannot be decoded is an error, or its object would be lost silently. One
// process may use a folder at a time; the store does not lock it.
func Open(options Options) (*Store, error) {
	codecs := serializer.NewCodecFactory(options.Scheme)
	s := &Store{
		ObjectTracker: testing.NewObjectTracker(options.Scheme, codecs.UniversalDecoder()),
		scheme:        options.Scheme,
		decode:        codecs.UniversalDeserializer(),
		types:         options.Types,
		dir:           options.Dir,
		fields:        map[schema.GroupVersionResource]fieldManager{},
	}
	if options.Rules != nil {
		s.rules = options.Rules(s)
	}
	if s.types == nil {
		s.types = managedfields.NewDeducedTypeConverter()
	}
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("reading the objects in %s: %w", s.dir, err)
	}
	s.history = newHistory(s.version)
	return s, nil
}

// Add always fails, because it would bypass the rules and the files. Objects are added by Create.
func (s *Store) Add(runtime.Object) error { return errors.New("objects are added by Create") }

// Version returns the resource version of the last change. A watch that starts there receives all later changes.
func (s *Store) Version() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return formatVersion(s.version)
}

// Lookup implements Reader.
func (s *Store) Lookup(key client.ObjectKey, into client.Object) error {
	kind, err := apiutil.GVKForObject(into, s.scheme)
	if err != nil {
		return fmt.Errorf("finding the kind of %T: %w", into, err)
	}
	found, err := s.Get(resourceOf(kind), key.Namespace, key.Name)
	if err != nil {
		return err
	}
	return copyInto(found, into)
}

// LookupAll implements Reader.
func (s *Store) LookupAll(into client.ObjectList) error {
	kind, err := apiutil.GVKForObject(into, s.scheme)
	if err != nil {
		return fmt.Errorf("finding the kind of %T: %w", into, err)
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	found, err := s.List(resourceOf(kind), kind, "")
	if err != nil {
		return err
	}
	return copyInto(found, into)
}

// find returns a stored object, nil if there is none.
func (s *Store) find(resource schema.GroupVersionResource, namespace, name string) (client.Object, error) {
	found, err := s.Get(resource, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return asObject(found)
}

// resourceOf guesses the resource of a kind, as the fake client does: both must agree.
func resourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return resource
}

// kindOf returns the kind of a resource, by the plural that resourceOf guesses.
func (s *Store) kindOf(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	for name := range s.scheme.KnownTypes(resource.GroupVersion()) {
		if kind := resource.GroupVersion().WithKind(name); resourceOf(kind) == resource {
			return kind, nil
		}
	}
	return schema.GroupVersionKind{}, fmt.Errorf("no kind is known for %s", resource)
}

// asObject returns the object with its metadata. Only lists and options have none.
func asObject(object runtime.Object) (client.Object, error) {
	if object, ok := object.(client.Object); ok {
		return object, nil
	}
	return nil, fmt.Errorf("%T has no metadata", object)
}

// copyInto sets target, a pointer, to the content of source, a pointer of the same type that nobody else uses.
func copyInto(source, target runtime.Object) error {
	from, to := reflect.ValueOf(source), reflect.ValueOf(target)
	if from.Type() != to.Type() {
		return fmt.Errorf("%T cannot be read into %T", source, target)
	}
	to.Elem().Set(from.Elem())
	return nil
}

func formatVersion(version uint64) string { return strconv.FormatUint(version, 10) }
