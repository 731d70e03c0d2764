package installation

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/environment-broker/environment-broker/internal/manifest"
)

// ManifestFile is a YAML file with any number of objects. Name is its path in the release. The digest of a component covers the
// JSON form of its files, so the JSON field names must not change.
type ManifestFile struct {
	Name    string `json:"name"`
	Content []byte `json:"content"`
}

// ReadManifests reads a YAML file, or all YAML files in a folder and its subfolders, sorted by path. It skips files that do not
// end in .yaml or .yml, and fails if no file is left.
func ReadManifests(from fs.FS, name string) ([]ManifestFile, error) {
	var files []ManifestFile
	err := fs.WalkDir(from, name, func(at string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return nil
		case !slices.Contains([]string{".yaml", ".yml"}, strings.ToLower(path.Ext(at))):
			return nil
		}
		content, err := fs.ReadFile(from, at)
		if err != nil {
			return err
		}
		files = append(files, ManifestFile{Name: at, Content: content})
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such file or folder", name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the manifests in %s: %w", name, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: contains no YAML file", name)
	}
	return files, nil
}

// Parse returns the objects in the files, with the placeholders replaced by values. A placeholder without a value is an error.
// Errors name the file and never contain a value, because values may be secret.
func Parse(files []ManifestFile, values map[string]string) ([]*unstructured.Unstructured, error) {
	return read(files, func(key string) (string, bool) {
		value, known := values[key]
		return value, known
	})
}

// Keys returns the set of keys that the placeholders in the files refer to.
func Keys(files []ManifestFile) (map[string]bool, error) {
	keys := map[string]bool{}
	_, err := read(files, func(key string) (string, bool) {
		keys[key] = true
		return "value", true
	})
	return keys, err
}

// read parses the files. It replaces each placeholder with the text that the given function returns for its key.
func read(files []ManifestFile, value func(key string) (string, bool)) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, file := range files {
		found, err := manifest.DecodeYAML(file.Content, func(document *yaml.Node) error { return fill(document, value) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// placeholder matches a reference to a value. An additional dollar sign makes it literal text.
var placeholder = regexp.MustCompile(`\$?\$\{([^{}]*)\}`)

// key matches valid names of values; see IsKey.
var key = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// IsKey reports whether name is a valid name of a value. It may contain letters, digits, dots, hyphens and underscores, and must
// start and end with a letter or digit.
func IsKey(name string) bool { return key.MatchString(name) }

// fill replaces the placeholders in all scalars below the node, except in the keys of mappings.
func fill(node *yaml.Node, value func(key string) (string, bool)) error {
	if node.Kind == yaml.ScalarNode {
		return fillText(node, value)
	}
	for i, child := range node.Content {
		// In a mapping, keys and values alternate.
		if name := node.Kind == yaml.MappingNode && i%2 == 0; name {
			continue
		}
		if err := fill(child, value); err != nil {
			return err
		}
	}
	return nil
}

// fillText replaces the placeholders of one scalar. An unquoted scalar gets the type of its new text.
func fillText(node *yaml.Node, value func(key string) (string, bool)) error {
	var failed error
	used := false
	filled := placeholder.ReplaceAllStringFunc(node.Value, func(found string) string {
		if strings.HasPrefix(found, "$$") {
			return found[1:]
		}
		name := found[len("${") : len(found)-len("}")]
		if !IsKey(name) {
			failed = fmt.Errorf("line %d: %q is not a valid key; to get the text itself, write $%s", node.Line, name, found)
			return found
		}
		text, known := value(name)
		if !known {
			failed = fmt.Errorf("line %d: there is no value for %s", node.Line, found)
		}
		used = true
		return text
	})
	if failed != nil {
		return failed
	}
	if plain := node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0; used && plain {
		node.Tag = tagOf(filled)
	}
	node.Value = filled
	return nil
}

// tagOf returns the YAML tag of an unquoted scalar with the given text. Unlike YAML, it does not recognize dates, floats or null,
// so a version such as 1.30 stays a string.
func tagOf(text string) string {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return "!!int"
	}
	if text == "true" || text == "false" {
		return "!!bool"
	}
	return "!!str"
}
