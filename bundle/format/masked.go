package format

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

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

// SecretValues returns the values of a Secret in plain text, except very short ones. It includes values that the API server rejects.
// For objects of other kinds, it returns nil.
func SecretValues(secret *unstructured.Unstructured) (values []string) {
	if !IsSecret(secret) {
		return nil
	}

	plain, _, _ := unstructured.NestedFieldNoCopy(secret.Object, "stringData")
	values = scalars(plain)

	encoded, _, _ := unstructured.NestedFieldNoCopy(secret.Object, "data")
	for _, value := range scalars(encoded) {
		decoded, err := base64.StdEncoding.DecodeString(value)
		if err == nil {
			values = append(values, string(decoded))
		}

		// A number that is not encoded may look like base64.
		if err != nil || strings.Trim(value, "0123456789") == "" {
			values = append(values, value)
		}
	}

	return slices.DeleteFunc(values, func(value string) bool { return len(value) < shortest })
}

// scalars returns the strings and numbers at all levels of a value. The values of a Secret must be strings. The API server rejects
// others, such as a password of digits without quotation marks, but quotes them in its error.
func scalars(value any) (texts []string) {
	switch value := value.(type) {
	case map[string]any:
		for _, each := range value {
			texts = append(texts, scalars(each)...)
		}
	case []any:
		for _, each := range value {
			texts = append(texts, scalars(each)...)
		}
	case string:
		texts = append(texts, value)
	case int64:
		texts = append(texts, strconv.FormatInt(value, 10))
	case float64:
		texts = append(texts, strconv.FormatFloat(value, 'f', -1, 64), fmt.Sprint(value))
	}

	return texts
}
