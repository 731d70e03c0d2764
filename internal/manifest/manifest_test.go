package manifest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
