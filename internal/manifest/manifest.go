// Package manifest reads Kubernetes objects from YAML and JSON files as kubectl does: a file can contain any number of documents, and a
// List stands for its items. It rejects objects that no later step could find again.
//
// Bundles and Kyma releases are read with it. What a caller accepts beyond that, for example placeholders, belongs to the caller, which can
// change the nodes of a document before they are converted.
package manifest

import (
	"bytes"
	encodingjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// Decode returns the objects of all documents in a YAML file, or of a file with one or more JSON objects in a row. Errors name the
// line if it is known.
func Decode(content []byte) ([]*unstructured.Unstructured, error) {
	if trimmed := bytes.TrimSpace(content); len(trimmed) > 0 && trimmed[0] == '{' {
		if objects, err := decodeJSON(trimmed); err == nil {
			return objects, nil
		}
	}

	return DecodeYAML(content, func(*yaml.Node) error { return nil })
}

// DecodeYAML is like Decode for YAML files. It calls edit for each document before the conversion, and returns its errors unchanged.
func DecodeYAML(content []byte, edit func(document *yaml.Node) error) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured

	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		document := &yaml.Node{}

		switch err := decoder.Decode(document); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("not valid YAML: %w", err)
		}

		if err := edit(document); err != nil {
			return nil, err
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

	resolve(document)

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

// boolean returns the Boolean that an unquoted word stands for in YAML 1.1, which kubectl and Helm read. In YAML 1.2, these words are
// strings. Words with other capitals, such as yES, are strings in both.
func boolean(word string) (value, found bool) {
	switch word {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return true, true
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return false, true
	default:
		return false, false
	}
}

// resolve makes the decoder treat values as kubectl does. Dates are text: JSON has no dates, and the decoder would add the time to
// 2020-01-01. Words such as yes and off are Booleans, except as keys, because a key in JSON is a string.
func resolve(node *yaml.Node) {
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!timestamp" {
		node.Tag = "!!str"
	}

	for number, each := range node.Content {
		isKey := node.Kind == yaml.MappingNode && number%2 == 0
		if value, found := boolean(each.Value); found && !isKey && each.Kind == yaml.ScalarNode && each.Style == 0 {
			each.Tag, each.Value = "!!bool", strconv.FormatBool(value)
		}

		resolve(each)
	}
}

// flatten returns the items of a List, or the object itself.
func flatten(object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if !object.IsList() {
		return []*unstructured.Unstructured{object}, Check(object)
	}

	var objects []*unstructured.Unstructured

	err := object.EachListItem(func(item runtime.Object) error {
		one, isObject := item.(*unstructured.Unstructured)
		if !isObject {
			return errors.New("the List contains an item that is not an object")
		}

		objects = append(objects, one)

		return Check(one)
	})
	if err != nil {
		return nil, fmt.Errorf("in a List: %w", err)
	}

	return objects, nil
}

// Check rejects objects without an apiVersion or a kind, which no API server accepts. It also rejects objects without a name, for example
// with generateName, because they could not be found again, and those whose name or namespace is not a string.
func Check(object *unstructured.Unstructured) error {
	switch {
	case object.GetAPIVersion() == "":
		return errors.New("the object has no apiVersion")
	case object.GetKind() == "":
		return errors.New("the object has no kind")
	}

	for _, field := range []string{"name", "namespace"} {
		value, _, err := unstructured.NestedFieldNoCopy(object.Object, "metadata", field)
		if _, isString := value.(string); err != nil || value != nil && !isString {
			return fmt.Errorf("the %s has a metadata.%s that is not a string: put it in quotes", object.GetKind(), field)
		}
	}

	if object.GetName() == "" {
		return fmt.Errorf("the %s has no metadata.name", object.GetKind())
	}

	return nil
}
