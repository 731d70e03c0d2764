package catalog_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
)

func TestSchemasMustBeBounded(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		schema string
		want   string
	}{
		"Text":        {"texts need a limit", `{"type":"string"}`, "schema: maxLength is missing"},
		"BoundedText": {"a limited text", `{"type":"string","maxLength":5}`, ""},
		"Choice":      {"choices are limited", `{"type":"string","enum":["a"]}`, ""},
		"Number":      {"numbers need a range", `{"type":"integer","minimum":0}`, "schema: maximum is missing"},
		"List":        {"lists need a limit", `{"type":"array","items":{"type":"boolean"}}`, "schema: maxItems is missing"},
		"Items":       {"the entries of a list need a limit", `{"type":"array","maxItems":1,"items":{"type":"string"}}`, "schema[]: maxLength is missing"},
		"AnyItems":    {"a list needs a schema of its entries", `{"type":"array","maxItems":1}`, "schema[]: type <nil> must be"},
		"AnyFields":   {"objects must not have other fields", `{"type":"object"}`, "schema: additionalProperties is missing"},
		"Fields":      {"fields need a limit", `{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string"}}}`, "schema.a: maxLength is missing"},
		"OtherFields": {"the number of other fields needs a limit", `{"type":"object","additionalProperties":{"type":"boolean"}}`, "schema: maxProperties is missing"},
		"OtherValues": {"the values of other fields need a limit", `{"type":"object","maxProperties":1,"additionalProperties":{"type":"string"}}`, "schema.*: maxLength is missing"},
		"Labels":      {"a limited set of labels", `{"type":"object","maxProperties":1,"additionalProperties":{"type":"string","maxLength":5}}`, ""},
		"Several":     {"a value of any type has no limit", `{"type":["string","object"],"maxLength":5}`, "must be a single JSON type"},
		"Combined":    {"combined schemas are not analyzed", `{"type":"boolean","anyOf":[]}`, "the keyword anyOf is not supported"},
	}

	for name, test := range cases {
		var schema map[string]any
		if err := json.Unmarshal([]byte(test.schema), &schema); err != nil {
			t.Fatal(err)
		}

		err := catalog.CheckBounds(schema)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %s: got %v, want %q", name, test.reason, err, test.want)
		}
	}
}

// TestProvisionerLimits checks that no published schema allows more than the limits that the Provisioner enforces.
func TestProvisionerLimits(t *testing.T) {
	t.Parallel()

	limits := map[string]int{
		"name maxLength": bounds.Name, "administrators maxItems": bounds.Administrators, "administrators[] maxLength": bounds.Name,
		"zones maxItems": bounds.Zones, "zones[] maxLength": bounds.Name, "kubeconfig maxLength": bounds.Kubeconfig,
		"oidc.issuerURL maxLength": bounds.URL, "oidc.clientID maxLength": bounds.Name, "oidc.groupsClaim maxLength": bounds.Name,
		"oidc.usernameClaim maxLength": bounds.Name, "oidc.usernamePrefix maxLength": bounds.Name, "oidc.signingAlgs maxItems": bounds.SigningAlgorithms,
	}
	checked := map[string]bool{}

	var walk func(plan, field string, schema map[string]any)

	walk = func(plan, field string, schema map[string]any) {
		for _, keyword := range []string{"maxLength", "maxItems"} {
			given, limited := schema[keyword].(float64)
			key := fmt.Sprintf("%s %s", strings.Replace(field, "oidc.list[].", "oidc.", 1), keyword)

			if limit, known := limits[key]; limited && known {
				checked[key] = true

				if int(given) > limit {
					t.Errorf("%s: %s: %v is above the Provisioner's limit %d", plan, key, given, limit)
				}
			}
		}

		if items, ok := schema["items"].(map[string]any); ok {
			walk(plan, field+"[]", items)
		}

		properties, _ := schema["properties"].(map[string]any)
		for name, property := range properties {
			walk(plan, strings.TrimPrefix(field+"."+name, "."), property.(map[string]any))
		}
	}

	for _, plan := range read(t).Services[0].Plans {
		for _, kind := range []string{"create", "update"} {
			schema := plan.Schemas["service_instance"][kind]["parameters"]
			walk(plan.Name+" "+kind, "", schema)

			if err := catalog.CheckBounds(schema); err != nil {
				t.Errorf("%s: the published schema of %s is not bounded: %v", plan.Name, kind, err)
			}
		}
	}

	for key := range limits {
		if !checked[key] {
			t.Errorf("no schema has the limit %s", key)
		}
	}
}
