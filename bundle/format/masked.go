package format

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// masked is the path of an optional file with a JSON array of the strings that messages must not contain. The plain+v0 format of
// rukpak has no such file.
const masked = "metadata/masked.json"

// shortest is the minimum length of Secret values that are masked. Masking shorter ones would also hide parts of ordinary words.
const shortest = 4

// Masked returns the strings in a bundle that messages must not contain: those that metadata/masked.json lists, and the values of
// Secrets.
func Masked(bundle fs.FS, objects []*unstructured.Unstructured) (texts []string, err error) {
	content, err := fs.ReadFile(bundle, masked)

	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", masked, err)
	case json.Unmarshal(content, &texts) != nil:
		return nil, errors.New(masked + " is not a JSON array of strings")
	}

	for _, object := range objects {
		texts = append(texts, SecretValues(object)...)
	}

	return texts, nil
}

// IsSecret reports whether an object is a Secret.
func IsSecret(object *unstructured.Unstructured) bool {
	return object.GetAPIVersion() == "v1" && object.GetKind() == "Secret"
}

// SecretValues returns the values of a Secret in plain text, except very short ones. For objects of other kinds, it returns nil.
func SecretValues(secret *unstructured.Unstructured) (values []string) {
	if !IsSecret(secret) {
		return nil
	}

	plain, _, _ := unstructured.NestedStringMap(secret.Object, "stringData")
	for _, value := range plain {
		values = append(values, value)
	}

	encoded, _, _ := unstructured.NestedStringMap(secret.Object, "data")
	for _, value := range encoded {
		if decoded, err := base64.StdEncoding.DecodeString(value); err == nil {
			values = append(values, string(decoded))
		}
	}

	return slices.DeleteFunc(values, func(value string) bool { return len(value) < shortest })
}
