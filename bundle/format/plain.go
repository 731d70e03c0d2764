package format

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/environment-broker/environment-broker/internal/manifest"
)

// manifests is the name of the folder that contains the objects.
const manifests = "manifests"

// Plain is the plain+v0 format: a manifests folder without subfolders, whose files contain objects in YAML or JSON. A file can
// contain any number of documents. A bundle contains at least one object. Other folders are ignored.
type Plain struct{}

// Convert checks the bundle and returns it unchanged.
func (Plain) Convert(_ context.Context, bundle fs.FS) (fs.FS, error) {
	_, err := Objects(bundle)

	return bundle, err
}

// Objects returns the objects of a plain+v0 bundle sorted by file name. A List is replaced by its items. Errors name the file, and
// the line if it is known.
func Objects(bundle fs.FS) ([]*unstructured.Unstructured, error) {
	entries, err := fs.ReadDir(bundle, manifests)

	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("the bundle has no manifests folder: put the objects into one, or set the directory of the source to the folder that contains it")
	case err != nil:
		return nil, fmt.Errorf("reading the manifests folder: %w", err)
	}

	var objects []*unstructured.Unstructured

	files := map[string]string{}

	for _, entry := range entries {
		name := path.Join(manifests, entry.Name())

		if !entry.Type().IsRegular() {
			return nil, fmt.Errorf("%s is not a file: the manifests folder may contain only files, not subfolders or links", name)
		}

		content, err := fs.ReadFile(bundle, name)
		if err != nil {
			return nil, fmt.Errorf("reading a manifest: %w", err)
		}

		found, err := manifest.Decode(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		for _, object := range found {
			if first, twice := files[identity(object)]; twice {
				return nil, fmt.Errorf("%s and %s contain the same object, %s: remove one of them", first, name, identity(object))
			}

			files[identity(object)] = name
		}

		objects = append(objects, found...)
	}

	if len(objects) == 0 {
		return nil, errors.New("the manifests folder contains no objects: a bundle needs at least one")
	}

	return objects, nil
}

// identity returns the group, kind, namespace and name of an object as text. Objects with the same identity cannot exist at the
// same time.
func identity(object *unstructured.Unstructured) string {
	kind := object.GroupVersionKind().GroupKind()
	if object.GetNamespace() == "" {
		return kind.String() + " " + object.GetName()
	}

	return kind.String() + " " + object.GetNamespace() + "/" + object.GetName()
}

// Distinct returns an error if two of the objects have the same group, kind, namespace and name.
func Distinct(objects []*unstructured.Unstructured) error {
	seen := map[string]bool{}

	for _, object := range objects {
		if seen[identity(object)] {
			return fmt.Errorf("%s occurs twice: remove one of them", identity(object))
		}

		seen[identity(object)] = true
	}

	return nil
}
