package store

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/environment-broker/environment-broker/internal/sandbox/atomicfile"
)

const (
	extension = ".json"
	// clusterScope is the folder of the objects without a namespace.
	clusterScope = "-"
)

// path returns the file of an object: <dir>/<resource>.<group>/<namespace>/<name>.json.
func (s *Store) path(resource schema.GroupVersionResource, namespace, name string) string {
	if namespace == "" {
		namespace = clusterScope
	}
	return filepath.Join(s.dir, resource.GroupResource().String(), namespace, name+extension)
}

// load restores the objects of all files, and removes the temporary files of a killed process. The next resource version follows the highest
// of the objects: versions of deleted objects may recur, but no watch outlives the process.
func (s *Store) load() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(s.dir)
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

// restore adds a stored object without the rules, which it has passed before, and raises the version of the store to its version.
func (s *Store) restore(content []byte) error {
	object, err := s.decoded(content)
	if err != nil {
		return err
	}
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return fmt.Errorf("reading the resource version of %s: %w", object.GetName(), err)
	}
	s.version = max(s.version, version)
	return s.ObjectTracker.Add(object)
}

// encoded returns the content of the file of an object: JSON with its kind.
func (s *Store) encoded(object client.Object) ([]byte, error) {
	kind, err := apiutil.GVKForObject(object, s.scheme)
	if err != nil {
		return nil, fmt.Errorf("finding the kind of %T: %w", object, err)
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	content, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", kind.Kind, object.GetName(), err)
	}
	return content, nil
}

func (s *Store) decoded(content []byte) (client.Object, error) {
	decoded, _, err := s.decode.Decode(content, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decoding a stored object: %w", err)
	}
	return asObject(decoded)
}
