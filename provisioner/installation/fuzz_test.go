package installation_test

import (
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/provisioner/installation"
)

// FuzzParse parses arbitrary manifests. Each accepted object can be sent to an API server, and errors contain no value.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "---\n---\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: ${key}}\n", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: X, metadata: {name: n}}]",
		"kind: List\nitems: [1]", "{a: &x [*x]}", "a: &a [x,x]\nb: [*a,*a]", "[1]", "${key}: 1", "1: 2", "apiVersion: [v1]", "metadata: {name: 1}\nkind: 2\napiVersion: 3",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: !!binary ${key}\n", "? [a]\n: b", "<<: {a: 1}", "a: !!int ${key}", "a: 2001-01-01", "a: .nan", "items: {}\nkind: List\napiVersion: v1",
	} {
		f.Add(seed)
	}

	const value = "hunter2hunter2"

	f.Fuzz(func(t *testing.T, content string) {
		files := []installation.ManifestFile{{Name: "file.yaml", Content: []byte(content)}}

		keys, keysErr := installation.Keys(files)

		values := map[string]string{}
		for key := range keys {
			values[key] = value
		}

		objects, err := installation.Parse(files, values)
		if err != nil && strings.Contains(err.Error(), value) && !strings.Contains(content, value) {
			t.Errorf("the error contains a value: %v", err)
		}

		if err != nil {
			return
		}

		if keysErr != nil {
			t.Errorf("the manifests are parsed, but their keys are not: %v", keysErr)
		}

		for _, object := range objects {
			if object.GetName() == "" || object.GetKind() == "" || object.GetAPIVersion() == "" {
				t.Errorf("an object without a name or a kind: %v", object)
			}

			if _, err := object.MarshalJSON(); err != nil {
				t.Errorf("the object cannot be encoded: %v", err)
			}
		}
	})
}
