package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// Objects reads the objects of the files, with the values filled in. Its errors name the file and never a value.
func Objects(files []File, values map[string]string) ([]*unstructured.Unstructured, error) {
	return read(files, func(key string) (string, bool) {
		value, known := values[key]
		return value, known
	})
}

// Keys lists the values that the files name, each once.
func Keys(files []File) (map[string]bool, error) {
	keys := map[string]bool{}
	_, err := read(files, func(key string) (string, bool) {
		keys[key] = true
		return "value", true
	})
	return keys, err
}

func read(files []File, value func(key string) (string, bool)) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, file := range files {
		decoder := yaml.NewDecoder(bytes.NewReader(file.Content))
		for {
			document := &yaml.Node{}
			err := decoder.Decode(document)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file.Name, err)
			}
			found, err := objectsOf(document, value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file.Name, err)
			}
			objects = append(objects, found...)
		}
	}
	return objects, nil
}

// objectsOf reads one document, which may be empty or a List.
func objectsOf(document *yaml.Node, value func(key string) (string, bool)) ([]*unstructured.Unstructured, error) {
	if err := fill(document, value); err != nil {
		return nil, err
	}
	var content any
	if err := document.Decode(&content); err != nil {
		return nil, err
	}
	if content == nil {
		return nil, nil
	}
	text, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("line %d: it cannot be written as JSON: a key is not a text", line(document))
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &object.Object); err != nil {
		return nil, fmt.Errorf("line %d: it is not an object", line(document))
	}
	if !object.IsList() {
		return []*unstructured.Unstructured{object}, check(object, line(document))
	}
	var objects []*unstructured.Unstructured
	err = object.EachListItem(func(item runtime.Object) error {
		one, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("line %d: the List holds something that is not an object", line(document))
		}
		objects = append(objects, one)
		return check(one, line(document))
	})
	return objects, err
}

// check finds what no API server would take, or what could not be found again.
func check(object *unstructured.Unstructured, line int) error {
	switch {
	case object.GetAPIVersion() == "":
		return fmt.Errorf("line %d: the object has no apiVersion", line)
	case object.GetKind() == "":
		return fmt.Errorf("line %d: the object has no kind", line)
	case object.GetName() == "":
		return fmt.Errorf("line %d: the %s has no metadata.name", line, object.GetKind())
	default:
		return nil
	}
}

// line is where the document begins.
func line(document *yaml.Node) int {
	if len(document.Content) > 0 {
		return document.Content[0].Line
	}
	return document.Line
}
