package engines

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestDiffering checks that differing also finds an object that only one of two renderings contains.
func TestDiffering(t *testing.T) {
	named := func(names ...string) (objects []*unstructured.Unstructured) {
		for _, name := range names {
			object := &unstructured.Unstructured{}
			object.SetName(name)
			objects = append(objects, object)
		}

		return objects
	}

	for name, test := range map[string]struct {
		first, second []*unstructured.Unstructured
		want          string
	}{
		"equal":   {named("a", "b"), named("a", "b"), ""},
		"changed": {named("a", "b"), named("a", "c"), "b"},
		"missing": {named("a", "b"), named("a"), "b"},
		"added":   {named("a"), named("a", "b"), "b"},
		"none":    {nil, nil, ""},
	} {
		got := ""
		if found := differing(test.first, test.second); found != nil {
			got = found.GetName()
		}

		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
