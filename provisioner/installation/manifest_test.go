package installation_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/provisioner/installation"
)

func TestPlaceholders(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		line   string
		value  string
		want   any
	}{
		"text":       {"a value can be a part of a text", "it: a ${key} b", "x", "a x b"},
		"number":     {"an unquoted value that looks like a number, such as replicas, is a number", "it: ${key}", "3", int64(3)},
		"boolean":    {"an unquoted true or false is a boolean", "it: ${key}", "true", true},
		"quoted":     {"a quoted value is a string, as environment variables require", `it: "${key}"`, "3", "3"},
		"block":      {"a value in a block is a string", "it: |\n  a\n  ${key}\n", "3", "a\n3\n"},
		"empty":      {"an empty value is an empty text, not null", "it: ${key}", "", ""},
		"date":       {"a value that looks like a date stays a text", "it: ${key}", "2026-01-01", "2026-01-01"},
		"null":       {"the text null is a string", "it: ${key}", "null", "null"},
		"version":    {"a version such as 1.30 must not lose its zero", "it: ${key}", "1.30", "1.30"},
		"breaking":   {"a value cannot add fields", "it: ${key}", "x\nother: y", "x\nother: y"},
		"flow":       {"a value cannot add fields inside braces", "it: {a: \"${key}\"}", "x}, b: {", map[string]any{"a": "x}, b: {"}},
		"nested":     {"placeholders in a value are not replaced", "it: ${key}", "${other}", "${other}"},
		"escaped":    {"two dollars keep the text for a program in the cluster", "it: $${key} $HOME $(X) ${key}", "x", "${key} $HOME $(X) x"},
		"shell":      {"a shell's own form needs the second dollar too", "it: $${X:-y}", "", "${X:-y}"},
		"list":       {"placeholders in lists are replaced", "it: [\"${key}\", \"b\"]", "a", []any{"a", "b"}},
		"key":        {"field names are not replaced", "it: {\"${key}\": a}", "b", map[string]any{"${key}": "a"}},
		"dotted":     {"names may contain dots, as in charts", "it: ${key.of-a.chart}", "x", "x"},
		"untouched":  {"other values keep their YAML type", "it: 0x10", "", int64(16)},
		"plain date": {"a date has no time of day, as with kubectl", "it: {2026-01-01: 2026-01-01}", "", map[string]any{"2026-01-01": "2026-01-01"}},
		"long float": {"a number with a fraction stays a text: it may be a version", "it: ${key}", "1.5", "1.5"},
	} {
		t.Run(name, func(t *testing.T) {
			file := installation.ManifestFile{Name: "a.yaml", Content: []byte("apiVersion: v1\nkind: X\nmetadata: {name: x}\n" + tc.line)}
			objects, err := installation.Parse([]installation.ManifestFile{file}, map[string]string{"key": tc.value, "key.of-a.chart": tc.value})
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, objects[0].Object["it"]); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestObjectsOfFiles(t *testing.T) {
	files, err := installation.ReadManifests(fstest.MapFS{
		"c/b.yaml":     {Data: []byte("apiVersion: v1\nkind: X\nmetadata: {name: b1}\n---\n# nothing\n---\napiVersion: v1\nkind: X\nmetadata: {name: b2}\n")},
		"c/README.md":  {Data: []byte("# not a manifest: ${}")},
		"c/a/list.yml": {Data: []byte("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: X, metadata: {name: l1}}\n- {apiVersion: v1, kind: X, metadata: {name: l2}}\n")},
		"other.yaml":   {Data: []byte("apiVersion: v1\nkind: X\nmetadata: {name: other}\n")},
	}, "c")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := installation.Parse(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	if diff := cmp.Diff([]string{"l1", "l2", "b1", "b2"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		content string
		want    string
	}{
		"not YAML":   {"the error names the position", "a: b: c", "a.yaml: not valid YAML: yaml: "},
		"no kind":    {"the API server would reject it", "apiVersion: v1\nmetadata: {name: x}", "a.yaml: line 1: the object has no kind"},
		"no version": {"the API server would reject an object without a version", "kind: X\nmetadata: {name: x}", "a.yaml: line 1: the object has no apiVersion"},
		"generated": {
			"an inventory could not refer to an object without a fixed name", "\n\napiVersion: v1\nkind: Job\nmetadata: {generateName: x-}",
			"a.yaml: line 3: the Job has no metadata.name",
		},
		"text":       {"a file may contain other text by mistake", "hello", "a.yaml: line 1: not a Kubernetes object"},
		"in a list":  {"objects in lists are validated as well", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1}]", "a.yaml: line 1: in a List: the object has no kind"},
		"no value":   {"a missing value must not become an empty text", "apiVersion: v1\nkind: X\nmetadata:\n  name: ${who}", "a.yaml: line 4: there is no value for ${who}"},
		"shell form": {"shell syntax is rejected as a likely mistake", "a: ${X:-y}", `a.yaml: line 1: "X:-y" is not a valid key; to get the text itself, write $${X:-y}`},
		"empty name": {"an empty name is a mistake", "a: ${}", `a.yaml: line 1: "" is not a valid key`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := installation.Parse([]installation.ManifestFile{{Name: "a.yaml", Content: []byte(tc.content)}}, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestMissingFiles(t *testing.T) {
	root := fstest.MapFS{"docs/README.md": {Data: []byte("# none")}}
	for name, tc := range map[string]struct{ reason, path, want string }{
		"missing": {"a folder may be misspelled", "dcos", "dcos: no such file or folder"},
		"empty":   {"a component without an object would be ready immediately", "docs", "docs: contains no YAML file"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := installation.ReadManifests(root, tc.path); err == nil || err.Error() != tc.want {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
