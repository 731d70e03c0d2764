package kubeapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/program/atomicfile"
)

const (
	extension = ".json"
	// clusterScope is the folder name for objects without a namespace, in place of the namespace.
	clusterScope = "-"
)

// find returns a stored object, or an empty one if it does not exist. Callers can read the result without a lock, because stored
// objects are immutable.
func (s *Server) find(resource *resource, key types.NamespacedName) object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return resource.objects[key]
}

// existing returns a stored object, or an error that satisfies apierrors.IsNotFound.
func (s *Server) existing(resource *resource, key types.NamespacedName) (object, error) {
	found := s.find(resource, key)
	if found.Object == nil {
		return object{}, apierrors.NewNotFound(resource.plural(), key.Name)
	}
	return found, nil
}

// selected returns the objects that satisfy selects, sorted by namespace and name, and the resource version of this state. A
// watch that starts at this version receives every later change.
func (s *Server) selected(resource *resource, selects func(client.Object) bool) ([]object, uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found := []object{}
	for _, object := range resource.objects {
		if selects(object) {
			found = append(found, object)
		}
	}
	slices.SortFunc(found, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return found, s.version
}

// store replaces an object and records the change for watches. old is empty for a new object; stored is empty for a removed
// object. The caller has already updated the file, so the change survives if the process dies before store is called.
func (s *Server) store(resource *resource, old, stored object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stored.Object != nil {
		resource.objects[client.ObjectKeyFromObject(stored)] = stored
	} else {
		delete(resource.objects, client.ObjectKeyFromObject(old))
	}
	s.publish(change{resource: resource, old: old, object: stored})
}

// path returns the path of the file that stores an object: <dir>/<resource>.<group>/<namespace>/<name>.json. The parts are DNS
// names, so every object has a separate file within the folder.
func (s *Server) path(resource *resource, object client.Object) string {
	return filepath.Join(s.options.Dir, resource.plural().String(),
		cmp.Or(object.GetNamespace(), clusterScope), object.GetName()+extension)
}

// load restores the objects from all files and removes temporary files that a killed process has left behind. The version counter
// continues from the highest version of the objects. The versions of deleted objects can therefore be reused; this is safe,
// because no watch outlives the process. load needs no lock, because Open calls it before other goroutines can access the server.
func (s *Server) load() error {
	if err := os.MkdirAll(s.options.Dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(s.options.Dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing was written
	return fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || entry.IsDir():
			return err
		case atomicfile.Leftover(entry.Name()):
			return root.Remove(path)
		case filepath.Ext(path) != extension:
			return nil
		}
		content, err := root.ReadFile(path)
		if err == nil {
			err = s.restore(content)
		}
		if err != nil {
			return fmt.Errorf("file %s: %w", path, err)
		}
		return nil
	})
}

// restore adds the object in a file without admitting it again. If the object's resource version is higher than the server's
// version counter, restore raises the counter to the version of the object.
func (s *Server) restore(file []byte) error {
	restored, err := s.decodeFile(file)
	if err != nil {
		return err
	}
	version, err := strconv.ParseUint(restored.GetResourceVersion(), 10, 64)
	if err != nil {
		return fmt.Errorf("reading the resource version of %s: %w", restored.GetName(), err)
	}
	resource, err := s.resourceOf(restored.Object)
	if err != nil {
		return err
	}
	s.version = max(s.version, version)
	resource.objects[client.ObjectKeyFromObject(restored)] = restored
	return nil
}

// decodeFile returns the object in a file. Decoding normalizes an object; for example, times are truncated to whole seconds. New
// versions of an object are therefore also decoded from their file, before they are stored.
func (s *Server) decodeFile(file []byte) (object, error) {
	decoded, _, err := s.decoder.Decode(file, nil, nil)
	if err != nil {
		return object{}, fmt.Errorf("decoding a stored object: %w", err)
	}
	found, err := asObject(decoded)
	if err != nil {
		return object{}, err
	}
	return responseObject(found)
}

// responseObject returns an object with its JSON for responses. The JSON is encoded once per version instead of once per
// response. It omits the managed fields: they are as long as the rest of the object, and no client in this project reads them.
func responseObject(of client.Object) (object, error) {
	managed := of.GetManagedFields()
	of.SetManagedFields(nil)
	content, err := encoded(of)
	of.SetManagedFields(managed)
	return object{Object: of, content: content}, err
}

// empty returns an empty object of the resource's kind.
func (s *Server) empty(resource *resource) (client.Object, error) {
	created, err := s.options.Scheme.New(resource.GroupVersionKind)
	if err != nil {
		return nil, fmt.Errorf("creating an empty %s: %w", resource.Kind.Kind, err)
	}
	created.GetObjectKind().SetGroupVersionKind(resource.GroupVersionKind)
	return asObject(created)
}

// encoded returns the JSON of an object. apiVersion and kind must be set, because they select the Go type when the file is read.
func encoded(of client.Object) ([]byte, error) {
	content, err := json.Marshal(of)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", of.GetObjectKind().GroupVersionKind().Kind, of.GetName(), err)
	}
	return content, nil
}

// asObject converts a runtime.Object to a client.Object. It fails only for kinds without object metadata: lists and options.
func asObject(of runtime.Object) (client.Object, error) {
	if object, ok := of.(client.Object); ok {
		return object, nil
	}
	return nil, fmt.Errorf("%T has no metadata", of)
}

// copyOf returns a copy that the caller may modify.
func copyOf(of client.Object) client.Object {
	copied, _ := of.DeepCopyObject().(client.Object) // a copy has the type of the original
	return copied
}

// formatVersion returns a resource version as a string, which clients must treat as opaque.
func formatVersion(version uint64) string { return strconv.FormatUint(version, 10) }

// withoutVersion returns a copy of an object without its resource version and without the timestamps in its managed fields, so
// that two versions can be compared: every write updates both.
func withoutVersion(of client.Object) client.Object {
	copied := copyOf(of)
	copied.SetResourceVersion("")
	managers := copied.GetManagedFields()
	for i := range managers {
		managers[i].Time = nil
	}
	copied.SetManagedFields(managers)
	return copied
}
