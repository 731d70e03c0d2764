package crdsafety_test

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/environment-broker/environment-broker/bundle/crdsafety"
)

// FuzzDefinition compares arbitrary schemas, whose enums and defaults are JSON from the authors of bundles. Comparing a definition with
// itself must find nothing.
func FuzzDefinition(f *testing.F) {
	f.Add(`{"type":"string","enum":["a"]}`, `{"type":"string","enum":["a","b"],"default":"a"}`)
	f.Add(`{"type":"object","properties":{"a":{"minimum":1}}}`, `{"type":"object","required":["a"]}`)
	f.Add(`{"default":1e999}`, `{"default":1e999}`)
	f.Add(`{"enum":[null,1e999]}`, `{"items":{"allOf":[{}]}}`)

	f.Fuzz(func(t *testing.T, before, after string) {
		present, wanted := definitionOf(before), definitionOf(after)
		if present == nil || wanted == nil {
			return
		}

		crdsafety.Definition(present, wanted)

		if violations := crdsafety.Definition(wanted, wanted); len(violations) > 0 {
			t.Errorf("the unchanged schema %s has violations: %v", after, violations)
		}
	})
}

// definitionOf returns a definition with one version, or nil if the schema cannot be decoded.
func definitionOf(schema string) *apiextensionsv1.CustomResourceDefinition {
	decoded := &apiextensionsv1.JSONSchemaProps{}
	if json.Unmarshal([]byte(schema), decoded) != nil {
		return nil
	}

	return &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: decoded},
		}},
	}}
}
