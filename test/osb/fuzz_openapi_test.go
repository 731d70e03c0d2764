package osb

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"

	"github.com/environment-broker/environment-broker/test/harness"
)

// describedCalls returns a generator of calls for every operation in the OpenAPI description. It never deletes the known
// instance, which later calls need.
func describedCalls(document *openapi3.T, known string) *rapid.Generator[harness.Call] {
	type endpoint struct {
		method, route string
		operation     *openapi3.Operation
	}

	var endpoints []endpoint

	for route, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			endpoints = append(endpoints, endpoint{method, route, operation})
		}
	}

	sort.Slice(endpoints, func(i, j int) bool {
		return endpoints[i].method+endpoints[i].route < endpoints[j].method+endpoints[j].route
	})

	return rapid.Custom(func(t *rapid.T) harness.Call {
		chosen := rapid.SampledFrom(endpoints).Draw(t, "endpoint")
		call := harness.Call{Method: chosen.method, Path: chosen.route, Header: http.Header{}}
		query := url.Values{}

		for _, reference := range slices.Concat(chosen.operation.Parameters, document.Paths.Find(chosen.route).Parameters) {
			parameter := reference.Value
			value := drawParameter(t, parameter, known)

			switch {
			case parameter.In == "path" && chosen.method == http.MethodDelete && value == known && chosen.route == routeInstance:
				call.Path = strings.ReplaceAll(call.Path, "{"+parameter.Name+"}", "nobody")
			case parameter.In == "path":
				call.Path = strings.ReplaceAll(call.Path, "{"+parameter.Name+"}", url.PathEscape(value))
			case parameter.In == "query" && rapid.IntRange(0, 5).Draw(t, "given") > 0:
				query.Set(parameter.Name, value)
			}
		}

		if len(query) > 0 {
			call.Path += "?" + query.Encode()
		}

		if chosen.operation.RequestBody != nil {
			schema := chosen.operation.RequestBody.Value.Content.Get("application/json").Schema.Value
			call.Body = encode(drawValue(t, "", schema, 0))
		}

		return call
	})
}

// drawParameter draws a value for a parameter in the path or the query. Most values are valid.
func drawParameter(t *rapid.T, parameter *openapi3.Parameter, known string) string {
	valid := map[string][]string{
		"instance_id": {known, "new-1", "new-2"}, "binding_id": {"b", "c"}, "service_id": {harness.ServiceID}, "plan_id": {harness.PlanAWS, harness.PlanGCP},
		"accepts_incomplete": {"true"}, "operation": {"provision", "deprovision", "00000000-0000-4000-8000-000000000000"},
	}

	values := valid[parameter.Name]
	if len(values) == 0 || rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
		return rapid.StringN(1, 40, 200).Draw(t, parameter.Name)
	}

	return rapid.SampledFrom(values).Draw(t, parameter.Name)
}

// maxDepth limits the nesting of drawn objects.
const maxDepth = 3

// drawValue draws a value for a property. Most values are valid according to the schema.
func drawValue(t *rapid.T, name string, schema *openapi3.Schema, depth int) any {
	odd := rapid.IntRange(0, 19).Draw(t, "odd")

	switch {
	case odd == 0:
		return rapid.SampledFrom([]any{nil, 5, -1.5, true, "", "x", []any{}, map[string]any{}, []any{1, "x"}}).Draw(t, "wrong")
	case schema == nil || schema.Type == nil || schema.Type.Is("object"):
		return drawObject(t, name, schema, depth)
	case len(schema.Enum) > 0:
		return rapid.SampledFrom(schema.Enum).Draw(t, name)
	case schema.Type.Is("boolean"):
		return rapid.Bool().Draw(t, name)
	case schema.Type.Is("integer"), schema.Type.Is("number"):
		return rapid.IntRange(-1, 100_000).Draw(t, name)
	case schema.Type.Is("array"):
		return rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, name)
	default:
		return drawText(t, name)
	}
}

// drawObject draws all required and some optional properties of an object. Objects without defined properties get properties
// from openFields.
func drawObject(t *rapid.T, name string, schema *openapi3.Schema, depth int) map[string]any {
	object := map[string]any{}

	if schema != nil {
		for _, property := range slices.Sorted(maps.Keys(schema.Properties)) {
			if slices.Contains(schema.Required, property) || rapid.Bool().Draw(t, "given") {
				object[property] = drawValue(t, property, schema.Properties[property].Value, depth+1)
			}
		}
	}

	// The specification does not define the fields of this object.
	if len(object) == 0 && depth <= maxDepth {
		open := openFields(name)
		for _, field := range slices.Sorted(maps.Keys(open)) {
			if rapid.IntRange(0, 2).Draw(t, "given") == 0 {
				object[field] = rapid.SampledFrom(open[field]).Draw(t, field)
			}
		}
	}

	return object
}

// openFields returns the fields that this broker reads from the named object, for which the specification defines no properties. It
// returns valid and invalid values for each field.
func openFields(name string) map[string][]any {
	switch name {
	case "parameters":
		return map[string][]any{
			"name": {"n", "", "%", strings.Repeat("n", 65)}, "region": {"eu-west-1", "moon", 5}, "autoScalerMin": {1, 4, -1, 1e9, "x"},
			"autoScalerMax": {4, 12, 0, 1.5}, "machineType": {"m6i.large", "x"}, "zones": {[]any{"eu-west-1a"}, []any{}, "a"},
			"administrators": {[]any{"a"}, []any{1}}, "purpose": {"production", ""}, "expiration_seconds": {600, 599, "x"},
			"role": {"admin", "god"}, "networking": {map[string]any{"nodes": "10.0.0.0/16"}, map[string]any{"nodes": "x"}},
			"oidc": {map[string]any{"issuerURL": "https://x", "clientID": "c"}, map[string]any{}}, "kubeconfig": {"x", "eHg="},
			"volumeSizeGb": {80, 1}, "maxSurge": {1, -1}, "unknown": {nil, 1},
		}
	case "context":
		return map[string][]any{
			"platform": {"cloudfoundry", "kubernetes", 5}, "globalaccount_id": {"g", "", 5, "a\x00"}, "subaccount_id": {"s", nil},
			"user_id": {"u", []any{}}, "active": {true, false, "x"}, "clusterid": {"c"}, "namespace": {"n"}, "instance_name": {"i", ""},
			"sm_operator_credentials": {
				map[string]any{"clientid": "c", "clientsecret": "s", "sm_url": "https://sm.example.com", "url": "https://tokens.example.com"},
				map[string]any{"clientid": "c", "clientsecret": "s"},
				"x",
			},
		}
	default:
		return nil
	}
}

// drawText draws a string. Most service and plan IDs are taken from the catalog.
func drawText(t *rapid.T, name string) string {
	switch {
	case name == "service_id" && rapid.IntRange(0, 9).Draw(t, "fits") > 0:
		return harness.ServiceID
	case name == "plan_id" && rapid.IntRange(0, 9).Draw(t, "fits") > 0:
		return rapid.SampledFrom([]string{harness.PlanAWS, harness.PlanAWS, harness.PlanGCP, harness.PlanAzure}).Draw(t, name)
	default:
		return rapid.StringN(0, 40, 200).Draw(t, name)
	}
}
