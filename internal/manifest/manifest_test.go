package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/manifest"
)

// TestDates verifies that dates stay as they are written. kubectl and Helm treat them as text, too.
func TestDates(t *testing.T) {
	for _, date := range []string{"2020-01-01", "2020-01-01 10:00:00", "2020-01-01T10:00:00+02:00", "!!timestamp 2020-01-01"} {
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, annotations: {createdAt: " + date + "}}\ndata: {2020-01-01: &a " + date + ", b: *a}\n"

		objects, err := manifest.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}

		want := strings.TrimPrefix(date, "!!timestamp ")
		if got := objects[0].GetAnnotations()["createdAt"]; got != want {
			t.Errorf("the annotation is %q, want %q", got, want)
		}

		if got := objects[0].Object["data"]; !cmp.Equal(got, map[string]any{"2020-01-01": want, "b": want}) {
			t.Errorf("the data are %v, want %q", got, want)
		}
	}
}

// TestBooleans compares the values and keys of an object with those that kubectl and Helm read. Only unquoted words are Booleans.
func TestBooleans(t *testing.T) {
	for word, want := range map[string]any{
		"true": true, "yes": true, "Y": true, "ON": true, "no": false, "n": false, "Off": false, "&a yes": true,
		"yES": "yES", "'yes'": "yes", `"off"`: "off", "!!str on": "on", "yesterday": "yesterday",
	} {
		text := "apiVersion: v1\nkind: Pod\nmetadata: {name: one}\nspec: {hostNetwork: " + word + ", list: [" + word + "]}\n"

		objects, err := manifest.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(map[string]any{"hostNetwork": want, "list": []any{want}}, objects[0].Object["spec"]); diff != "" {
			t.Errorf("%s: -want +got\n%s", word, diff)
		}

		var kubectl struct{ Spec map[string]any }
		if err := yaml.Unmarshal([]byte(text), &kubectl); err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(kubectl.Spec, objects[0].Object["spec"]); diff != "" {
			t.Errorf("%s: -kubectl +got\n%s", word, diff)
		}
	}

	objects, err := manifest.Decode([]byte("apiVersion: v1\nkind: Point\nmetadata: {name: one}\nspec: {x: 1, y: 2}\n"))
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(map[string]any{"x": int64(1), "y": int64(2)}, objects[0].Object["spec"]); diff != "" {
		t.Errorf("keys: -want +got\n%s", diff)
	}
}

// TestNames rejects names and namespaces that are numbers or Booleans. Without quotes, 7 and n are no strings.
func TestNames(t *testing.T) {
	for metadata, want := range map[string]string{
		"{name: 7}":                    "the Secret has a metadata.name that is not a string: put it in quotes",
		"{name: one, namespace: n}":    "the Secret has a metadata.namespace that is not a string: put it in quotes",
		"{namespace: one}":             "the Secret has no metadata.name",
		"[name]":                       "the Secret has a metadata.name that is not a string: put it in quotes",
		"{name: '7', namespace: 'on'}": "",
		"{name: one, namespace: }":     "",
	} {
		_, err := manifest.Decode([]byte("apiVersion: v1\nkind: Secret\nmetadata: " + metadata + "\n"))
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %v, want %q", metadata, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "{}", "{\"kind\":1}", "a: &a [*a]", "---\n---\n", "apiVersion: v1\nkind: List\nitems: [1]\n", "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\na: [b"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		objects, err := manifest.Decode(content)
		if err != nil {
			return
		}
		for _, object := range objects {
			if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" {
				t.Errorf("an incomplete object is accepted: %v", object.Object)
			}
		}
	})
}
