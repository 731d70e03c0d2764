package crdsafety_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/environment-broker/environment-broker/bundle/crdsafety"
)

// TestObjects validates existing objects against a new schema.
func TestObjects(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}

	for _, row := range []struct {
		reason, before, after, want string
		// specs are the existing objects.
		specs []any
	}{
		{"all are valid", "{type: string}", "{type: string, maxLength: 3}", "", []any{"a", "abc"}},
		{"one is too long", "{type: string}", "{type: string, maxLength: 3}", "version v1: the existing Thing default/thing-1 would be invalid: spec", []any{"a", "abcd"}},
		{"one was invalid before", "{type: string, maxLength: 3}", "{type: string, maxLength: 2}", "", []any{"a", "abcd"}},
		{"null was permitted", "{type: string, nullable: true}", "{type: string}", "thing-0 would be invalid", []any{nil}},
		{"both types are accepted", "{type: string}", "{x-kubernetes-int-or-string: true, description: d}", "", []any{"a"}},
		{"no object exists", "{type: string}", "{type: integer}", "", nil},
	} {
		t.Run(row.reason, func(t *testing.T) {
			present, wanted := definition(t, row.before), definition(t, row.after)
			present.Spec.Group, present.Spec.Names.Kind = kind.Group, kind.Kind

			scheme := runtime.NewScheme()
			scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
			scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind("ThingList"), &unstructured.UnstructuredList{})
			reader := fake.NewClientBuilder().WithScheme(scheme).Build()

			for i, spec := range row.specs {
				object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
				object.SetGroupVersionKind(kind)
				object.SetNamespace("default")
				object.SetName(fmt.Sprintf("thing-%d", i))

				if err := reader.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}

			violations, err := crdsafety.Objects(t.Context(), reader, present, wanted)
			if err != nil {
				t.Fatal(err)
			}

			if row.want == "" && len(violations) > 0 || row.want != "" && (len(violations) != 1 || !strings.Contains(violations[0].String(), row.want)) {
				t.Errorf("the violations are %v, want %q", violations, row.want)
			}
		})
	}
}
