package format

import (
	"bytes"
	"context"
	encodingjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
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

		found, err := Decode(content)
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

// Decode returns the objects of all documents in a file. JSON is valid YAML, except for files with several JSON objects in a row, which
// are also accepted.
func Decode(content []byte) ([]*unstructured.Unstructured, error) {
	if trimmed := bytes.TrimSpace(content); len(trimmed) > 0 && trimmed[0] == '{' {
		if objects, err := decodeJSON(trimmed); err == nil {
			return objects, nil
		}
	}

	var objects []*unstructured.Unstructured

	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		document := &yaml.Node{}

		switch err := decoder.Decode(document); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("not valid YAML: %w", err)
		}

		found, err := objectsOf(document)
		if err != nil {
			return nil, err
		}

		objects = append(objects, found...)
	}
}

// decodeJSON returns the objects of a file that contains only JSON objects.
func decodeJSON(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured

	for decoder := encodingjson.NewDecoder(bytes.NewReader(content)); ; {
		var text encodingjson.RawMessage

		switch err := decoder.Decode(&text); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("not valid JSON: %w", err)
		}

		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(text, &object.Object); err != nil {
			return nil, fmt.Errorf("not valid JSON: %w", err)
		}

		found, err := flatten(object)
		if err != nil {
			return nil, err
		}

		objects = append(objects, found...)
	}
}

// objectsOf returns the objects of a YAML document, or nil if the document is empty.
func objectsOf(document *yaml.Node) ([]*unstructured.Unstructured, error) {
	line := document.Line
	if len(document.Content) > 0 {
		line = document.Content[0].Line
	}

	keepDates(document)

	var content any
	if err := document.Decode(&content); err != nil {
		return nil, fmt.Errorf("not valid YAML: %w", err)
	}

	if content == nil {
		return nil, nil
	}

	text, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("line %d: cannot be converted to JSON: a key is not a string", line)
	}

	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &object.Object); err != nil {
		return nil, fmt.Errorf("line %d: not a Kubernetes object", line)
	}

	objects, err := flatten(object)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", line, err)
	}

	return objects, nil
}

// keepDates makes the decoder treat dates as text, as kubectl does: JSON has no dates, and the decoder would add the time to 2020-01-01.
func keepDates(node *yaml.Node) {
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!timestamp" {
		node.Tag = "!!str"
	}

	for _, each := range node.Content {
		keepDates(each)
	}
}

// flatten returns the items of a List, or the object itself.
func flatten(object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if !object.IsList() {
		return []*unstructured.Unstructured{object}, check(object)
	}

	var objects []*unstructured.Unstructured

	err := object.EachListItem(func(item runtime.Object) error {
		one, isObject := item.(*unstructured.Unstructured)
		if !isObject {
			return errors.New("the List contains an item that is not an object")
		}

		objects = append(objects, one)

		return check(one)
	})
	if err != nil {
		return nil, fmt.Errorf("in a List: %w", err)
	}

	return objects, nil
}

// check rejects objects without an apiVersion or a kind. It also rejects objects without a name, for example with generateName, because
// they could not be found again.
func check(object *unstructured.Unstructured) error {
	switch {
	case object.GetAPIVersion() == "":
		return errors.New("the object has no apiVersion")
	case object.GetKind() == "":
		return errors.New("the object has no kind")
	case object.GetName() == "":
		return fmt.Errorf("the %s has no metadata.name", object.GetKind())
	default:
		return nil
	}
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
