package operator

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// description is what the tests read of openapi.yaml.
type description struct {
	Paths      map[string]map[string]any `json:"paths"`
	Components struct {
		Schemas map[string]struct {
			Enum       []string       `json:"enum"`
			Properties map[string]any `json:"properties"`
		} `json:"schemas"`
	} `json:"components"`
}

func described(t *testing.T) description {
	t.Helper()

	var read description
	if err := yaml.Unmarshal(openAPI, &read); err != nil {
		t.Fatal(err)
	}

	return read
}

func TestEveryRouteIsDescribed(t *testing.T) {
	want, got := map[string][]string{}, map[string][]string{}

	for path, methods := range (&api{}).routes() {
		for method := range methods {
			want[path] = append(want[path], strings.ToLower(method))
		}
	}

	for path, methods := range described(t).Paths {
		got[path] = slices.Collect(maps.Keys(methods))
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes: -want +got\n%s", diff)
	}
}

func TestEveryFieldIsDescribed(t *testing.T) {
	for name, value := range map[string]any{
		"RuntimeList": operatorapi.RuntimeList{}, "Runtime": operatorapi.Runtime{}, "RuntimeStatus": operatorapi.RuntimeStatus{},
		"OperationList": operatorapi.OperationList{}, "Operation": operatorapi.Operation{}, "Problem": operatorapi.Problem{},
		"System": operatorapi.System{}, "TimelineEntry": operatorapi.TimelineEntry{}, "AdminKubeconfig": operatorapi.AdminKubeconfig{},
		"Expiration": operatorapi.Expiration{},
		"Catalog":    operatorapi.Catalog{}, "CatalogProblem": operatorapi.CatalogProblem{},
		"Binding": operatorapi.Binding{}, "BindingList": operatorapi.BindingList{},
		"Intervention": operatorapi.Intervention{}, "Error": operatorapi.Error{},
		"AuditList": operatorapi.AuditList{}, "AuditEntry": operatorapi.AuditEntry{}, "Actor": operatorapi.Actor{},
	} {
		want := fields(reflect.TypeOf(value))
		slices.Sort(want)

		got := slices.Sorted(maps.Keys(described(t).Components.Schemas[name].Properties))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// fields lists the names of a type's fields in JSON.
func fields(of reflect.Type) []string {
	var names []string

	for field := range of.Fields() {
		if field.Anonymous {
			names = append(names, fields(field.Type)...)

			continue
		}

		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}

	return names
}

func TestEveryStateIsDescribed(t *testing.T) {
	var want []string
	for _, meaning := range meanings() {
		want = append(want, string(meaning.state))
	}

	slices.Sort(want)

	got := slices.Sorted(slices.Values(described(t).Components.Schemas["RuntimeState"].Enum))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states of runtimes: -want +got\n%s", diff)
	}

	if diff := cmp.Diff(states(), described(t).Components.Schemas["OperationState"].Enum); diff != "" {
		t.Errorf("states of operations: -want +got\n%s", diff)
	}
}
