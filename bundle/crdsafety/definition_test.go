package crdsafety_test

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/bundle/crdsafety"
)

// definition returns a CustomResourceDefinition whose version v1 has a field with the given schema.
func definition(t *testing.T, field string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()

	found := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(`
metadata: {name: things.example.com}
spec:
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: `+field+`}}}}]
status: {storedVersions: [v1]}
`), found); err != nil {
		t.Fatal(err)
	}

	return found
}

// TestSchema changes the schema of a field.
func TestSchema(t *testing.T) {
	for _, row := range []struct{ reason, before, after, want string }{
		{"nothing changes", "{type: string}", "{type: string}", ""},
		{"a description is no rule", "{type: string}", "{type: string, description: d}", ""},
		{"a type excludes all values", "{type: string}", "{type: integer}", `.spec: the type changes from "string" to "integer"`},
		{"a number accepts integers", "{type: integer}", "{type: number}", ""},
		{"an integer excludes fractions", "{type: number}", "{type: integer}", "the type changes"},
		{"both types accept each", "{type: string}", "{x-kubernetes-int-or-string: true}", ""},
		{"one type excludes the other", "{x-kubernetes-int-or-string: true}", "{type: string}", "no longer accepts both numbers and strings"},
		{"null is excluded", "{type: string, nullable: true}", "{type: string}", "null is no longer permitted"},
		{"null is accepted", "{type: string}", "{type: string, nullable: true}", ""},
		{"a format excludes texts", "{type: string}", "{type: string, format: date}", `the format changes from "" to "date"`},
		{"no format excludes nothing", "{type: string, format: date}", "{type: string}", ""},

		{"a field goes, and its data", "{type: object, properties: {a: {type: string}}}", "{type: object}", "field .spec.a: the field is removed"},
		{"a field is kept as an unknown one", "{type: object, properties: {a: {type: string}}}", "{type: object, x-kubernetes-preserve-unknown-fields: true}", ""},
		{"a new field is optional", "{type: object}", "{type: object, properties: {a: {type: string}}}", ""},
		{"objects lack the new field", "{type: object}", "{type: object, required: [a], properties: {a: {type: string}}}", "field " +
			".spec.a: the field is now required"},
		{"objects may lack the field", "{type: object, properties: {a: {type: string}}}", "{type: object, required: [a], properties: {a: {type: string}}}", "now required"},
		{"a default completes objects", "{type: object}", "{type: object, required: [a], properties: {a: {type: string, default: x}}}", ""},
		{"a field becomes optional", "{type: object, required: [a], properties: {a: {type: string}}}", "{type: object, properties: {a: {type: string}}}", ""},
		{
			"a new object may require fields", "{type: object}",
			"{type: object, properties: {a: {type: object, required: [b], properties: {b: {type: string}}}}}", "",
		},
		{"elements have fields, too", "{type: array, items: {type: object, properties: {a: {type: string}}}}", "{type: array, items: {type: object}}", "field .spec[].a: the field is removed"},
		{"values of a map have types", "{type: object, additionalProperties: {type: string}}", "{type: object, additionalProperties: {type: integer}}", "field .spec.*: the type changes"},
		{"a map becomes an object without fields", "{type: object, additionalProperties: {type: string}}", "{type: object}", "additional fields are no longer permitted"},
		{"unknown fields are dropped", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object}", "unknown fields are no longer preserved"},
		{
			"unknown fields get a type", "{type: object, x-kubernetes-preserve-unknown-fields: true}",
			"{type: object, additionalProperties: {type: string}}", "additional fields now have a schema",
		},

		{"an enumeration excludes other values", "{type: string}", "{type: string, enum: [a]}", "only certain values are permitted"},
		{"a value is excluded", "{type: string, enum: [a, b]}", "{type: string, enum: [a]}", `the value "b" is no longer permitted`},
		{"a value is added", "{type: string, enum: [a]}", "{type: string, enum: [a, b]}", ""},
		{"all values are accepted", "{type: string, enum: [a]}", "{type: string}", ""},
		{"a pattern excludes texts", "{type: string}", "{type: string, pattern: a}", `the pattern changes from "" to "a"`},
		{"another pattern may exclude texts", "{type: string, pattern: a}", "{type: string, pattern: b}", "the pattern changes"},
		{"no pattern excludes nothing", "{type: string, pattern: a}", "{type: string}", ""},
		{"objects have relied on the default", "{type: string, default: a}", "{type: string}", `the default "a" is removed`},
		{"objects change their meaning", "{type: string, default: a}", "{type: string, default: b}", `the default changes from "a" to "b"`},
		{"a default for new objects", "{type: string}", "{type: string, default: a}", ""},

		{"minimum is new", "{type: integer}", "{type: integer, minimum: 1}", "a limit is added: minimum 1"},
		{"minimum rises", "{type: integer, minimum: 1}", "{type: integer, minimum: 2}", "minimum changes from 1 to 2"},
		{"minimum falls", "{type: integer, minimum: 2}", "{type: integer, minimum: 1}", ""},
		{"minimum goes", "{type: integer, minimum: 2}", "{type: integer}", ""},
		{"maximum is new", "{type: integer}", "{type: integer, maximum: 1}", "a limit is added: maximum 1"},
		{"maximum falls", "{type: integer, maximum: 2}", "{type: integer, maximum: 1}", "maximum changes from 2 to 1"},
		{"maximum rises", "{type: integer, maximum: 1}", "{type: integer, maximum: 2}", ""},
		{"the minimum itself is excluded", "{type: integer, minimum: 1}", "{type: integer, minimum: 1, exclusiveMinimum: true}", "the minimum itself"},
		{"the maximum itself is excluded", "{type: integer, maximum: 1}", "{type: integer, maximum: 1, exclusiveMaximum: true}", "the maximum itself"},
		{"multiples exclude values", "{type: integer}", "{type: integer, multipleOf: 2}", "only multiples of 2"},
		{"minLength rises", "{type: string, minLength: 1}", "{type: string, minLength: 2}", "minLength changes from 1 to 2"},
		{"maxLength is new", "{type: string}", "{type: string, maxLength: 2}", "a limit is added: maxLength 2"},
		{"maxLength rises", "{type: string, maxLength: 2}", "{type: string, maxLength: 3}", ""},
		{"minItems is new", "{type: array, items: {type: string}}", "{type: array, items: {type: string}, minItems: 1}", "a limit is added: minItems 1"},
		{"maxItems falls", "{type: array, items: {type: string}, maxItems: 3}", "{type: array, items: {type: string}, maxItems: 2}", "maxItems changes from 3 to 2"},
		{"minProperties is new", "{type: object}", "{type: object, minProperties: 1}", "a limit is added: minProperties 1"},
		{"maxProperties falls", "{type: object, maxProperties: 3}", "{type: object, maxProperties: 2}", "maxProperties changes from 3 to 2"},
		{"equal elements are excluded", "{type: array, items: {type: string}}", "{type: array, items: {type: string}, uniqueItems: true}", "duplicate elements"},
		{"a set excludes equal elements", "{type: array, items: {type: string}}", "{type: array, items: {type: string}, x-kubernetes-list-type: set}", "the list type changes from atomic to set"},
		{"an atomic list accepts the elements of a set", "{type: array, items: {type: string}, x-kubernetes-list-type: set}", "{type: array, items: {type: string}}", ""},
		{"elements get a schema", "{type: array}", "{type: array, items: {type: string}}", "the elements now have a schema"},

		{"another schema must match", "{type: string}", "{type: string, allOf: [{minLength: 1}]}", `the keyword "allOf" changes`},
		{"one of the schemas must match", "{type: string}", "{type: string, anyOf: [{minLength: 1}]}", `the keyword "anyOf" changes`},
		{"exactly one must match", "{type: string}", "{type: string, oneOf: [{minLength: 1}]}", `the keyword "oneOf" changes`},
		{"a schema must not match", "{type: string}", "{type: string, not: {minLength: 1}}", `the keyword "not" changes`},
		{"no other schema must match", "{type: string, allOf: [{minLength: 1}]}", "{type: string}", ""},
	} {
		t.Run(row.reason, func(t *testing.T) {
			verify(t, crdsafety.Definition(definition(t, row.before), definition(t, row.after)), row.want)
		})
	}
}

// verify verifies that there is exactly the wanted violation of version v1, or none.
func verify(t *testing.T, violations []crdsafety.Violation, want string) {
	t.Helper()

	if want == "" {
		if len(violations) > 0 {
			t.Errorf("unexpected violations: %v", violations)
		}

		return
	}

	if len(violations) != 1 || !strings.Contains(violations[0].String(), want) || !strings.HasPrefix(violations[0].String(), "things.example.com") {
		t.Errorf("the violations are %v, want %q", violations, want)
	}
}

// TestVersions changes the scope and the versions.
func TestVersions(t *testing.T) {
	second := func(change func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
		made := definition(t, "{type: string}")
		made.Spec.Versions = append(made.Spec.Versions, *made.Spec.Versions[0].DeepCopy())
		made.Spec.Versions[1].Name = "v2"
		change(made)

		return made
	}

	for _, row := range []struct {
		reason string
		change func(*apiextensionsv1.CustomResourceDefinition)
		want   string
	}{
		{"a new version", func(*apiextensionsv1.CustomResourceDefinition) {}, ""},
		{
			"the scope changes the names of objects", func(made *apiextensionsv1.CustomResourceDefinition) { made.Spec.Scope = "Cluster" },
			"the scope changes from Namespaced to Cluster",
		},
		{
			"objects are stored in the version",
			func(made *apiextensionsv1.CustomResourceDefinition) { made.Spec.Versions = made.Spec.Versions[1:] },
			"version v1: the version is removed, but objects may be stored in it",
		},
		{
			"without a schema, fields are dropped",
			func(made *apiextensionsv1.CustomResourceDefinition) { made.Spec.Versions[0].Schema = nil }, "version v1: the schema is removed",
		},
	} {
		t.Run(row.reason, func(t *testing.T) {
			verify(t, crdsafety.Definition(definition(t, "{type: string}"), second(row.change)), row.want)
		})
	}

	stored := definition(t, "{type: string}")
	stored.Status.StoredVersions = []string{"v2"}

	verify(t, crdsafety.Definition(stored, second(func(made *apiextensionsv1.CustomResourceDefinition) { made.Spec.Versions = made.Spec.Versions[1:] })), "")
}

// TestPermitted verifies which values of the annotation permit unsafe changes.
func TestPermitted(t *testing.T) {
	for value, want := range map[string]bool{"false": true, "true": false, "": false, "no": false} {
		made := definition(t, "{type: string}")
		made.Annotations = map[string]string{crdsafety.AnnotationValidation: value}

		if got := crdsafety.Permitted(definition(t, "{type: string}"), made); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}
