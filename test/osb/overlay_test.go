package osb

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/getkin/kin-openapi/openapi3"
)

// missingStatus is a status that the specification or HTTP defines, but the OpenAPI description lacks.
type missingStatus struct {
	status int
	// methods maps routes to the methods that can return the status. Nil means all methods of all routes.
	methods map[string][]string
	reason  string
}

func missingStatuses() []missingStatus {
	return []missingStatus{
		{401, nil, "a request without valid credentials, on every route"},
		{403, nil, "a user without the required role; defined by HTTP"},
		{412, nil, "an API version that the broker does not support"},
		{413, nil, "a body above the size limit; defined by HTTP"},
		{429, nil, "requests above the rate limit; defined by HTTP"},
		{500, nil, "an internal error of the broker"},
		{503, nil, "the database, or an upstream of a synchronous request, is unavailable"},
		{400, nil, "any request can be malformed"},
		{404, map[string][]string{routeInstance: {"PATCH"}, routeBinding: {"PUT"}}, "the instance does not exist"},
		{404, map[string][]string{routeBinding: {"DELETE"}, routeInstance: {"PUT", "DELETE"}}, "a path with an empty segment"},
		{422, map[string][]string{routeInstance: {"GET"}, routeBinding: {"GET"}}, "ConcurrencyError during a change or deletion"},
		{502, map[string][]string{routeBinding: {"PUT", "DELETE"}}, "the runtime rejects a call of a synchronous request"},
		{304, map[string][]string{routeCatalog: {"GET"}}, "the catalog has not changed since the platform fetched it"},
	}
}

// missingField is a property that the specification defines, but the OpenAPI description lacks.
type missingField struct {
	schema, name string
	value        *openapi3.Schema
}

func missingFields() []missingField {
	return []missingField{
		{"Service", "instances_retrievable", openapi3.NewBoolSchema()},
		{"Service", "bindings_retrievable", openapi3.NewBoolSchema()},
		{"Service", "allow_context_updates", openapi3.NewBoolSchema()},
	}
}

// closedSchemas returns the names of the schemas that must not allow additional properties.
func closedSchemas() []string {
	return []string{
		"Catalog", "Service", "Plan", "Schemas", "ServiceInstanceSchema", "ServiceBindingSchema", "DashboardClient",
		"ServiceInstanceResource", "ServiceInstanceProvisionResponse", "ServiceInstanceAsyncOperation", "ServiceInstanceMetadata",
		"AsyncOperation", "LastOperationResource", "ServiceBindingResource", "ServiceBindingMetadata", "ServiceBindingResponse",
		"ServiceBindingEndpoint", "ServiceBindingVolumeMount", "ServiceBindingVolumeMountDevice", "MaintenanceInfo", "Error",
	}
}

// overlay adds the missing statuses and properties to the OpenAPI description, and forbids additional properties in closed
// schemas.
func overlay(document *openapi3.T) {
	for _, missing := range missingStatuses() {
		for route, item := range document.Paths.Map() {
			for method, operation := range item.Operations() {
				if missing.methods == nil || slices.Contains(missing.methods[route], method) {
					addStatus(document, operation, missing)
				}
			}
		}
	}

	for _, missing := range missingFields() {
		document.Components.Schemas[missing.schema].Value.Properties[missing.name] = missing.value.NewRef()
	}

	for _, name := range closedSchemas() {
		closed := false
		document.Components.Schemas[name].Value.AdditionalProperties = openapi3.AdditionalProperties{Has: &closed}
	}
}

func addStatus(document *openapi3.T, operation *openapi3.Operation, missing missingStatus) {
	status := strconv.Itoa(missing.status)
	if operation.Responses.Value(status) != nil {
		return
	}

	response := openapi3.NewResponse().WithDescription(missing.reason)
	if missing.status >= http.StatusBadRequest {
		response = response.WithJSONSchemaRef(document.Components.Schemas["Error"])
	}

	operation.Responses.Set(status, &openapi3.ResponseRef{Value: response})
}
