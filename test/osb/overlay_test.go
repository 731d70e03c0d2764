package osb

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/getkin/kin-openapi/openapi3"
)

// missingStatus is a status that the specification or HTTP defines and the description lacks.
type missingStatus struct {
	status int
	// where maps routes to methods; everywhere when it is nil.
	where  map[string][]string
	reason string
}

func missingStatuses() []missingStatus {
	return []missingStatus{
		{401, nil, "a request without valid credentials, on every route"},
		{403, nil, "credentials without the role for this; HTTP's own"},
		{412, nil, "a version of the API that the broker does not serve"},
		{413, nil, "a body beyond the limit; HTTP's own"},
		{429, nil, "more requests than the broker's limit; HTTP's own"},
		{500, nil, "a fault of the broker"},
		{503, nil, "the broker's database, or what a synchronous request needs, is away"},
		{400, nil, "every request can be malformed"},
		{404, map[string][]string{routeInstance: {"PATCH"}, routeBinding: {"PUT"}}, "the instance does not exist"},
		{404, map[string][]string{routeBinding: {"DELETE"}, routeInstance: {"PUT", "DELETE"}}, "a path of which a part is empty"},
		{422, map[string][]string{routeInstance: {"GET"}, routeBinding: {"GET"}}, "ConcurrencyError while it is changed or deleted"},
		{502, map[string][]string{routeBinding: {"PUT", "DELETE"}}, "the runtime refuses what a synchronous request needs"},
		{304, map[string][]string{routeCatalog: {"GET"}}, "the platform has the catalog already"},
	}
}

// field is a property that the specification defines and the description lacks.
type field struct {
	schema, name string
	value        *openapi3.Schema
}

func missingFields() []field {
	return []field{
		{"Service", "instances_retrievable", openapi3.NewBoolSchema()},
		{"Service", "bindings_retrievable", openapi3.NewBoolSchema()},
		{"Service", "allow_context_updates", openapi3.NewBoolSchema()},
	}
}

// closedSchemas are those that allow no further properties (A10).
func closedSchemas() []string {
	return []string{
		"Catalog", "Service", "Plan", "Schemas", "ServiceInstanceSchema", "ServiceBindingSchema", "DashboardClient",
		"ServiceInstanceResource", "ServiceInstanceProvisionResponse", "ServiceInstanceAsyncOperation", "ServiceInstanceMetadata",
		"AsyncOperation", "LastOperationResource", "ServiceBindingResource", "ServiceBindingMetadata", "ServiceBindingResponse",
		"ServiceBindingEndpoint", "ServiceBindingVolumeMount", "ServiceBindingVolumeMountDevice", "MaintenanceInfo", "Error",
	}
}

// overlay adds the missing parts of the specification to the description, and closes its schemas.
func overlay(document *openapi3.T) {
	for _, missing := range missingStatuses() {
		for route, item := range document.Paths.Map() {
			for method, operation := range item.Operations() {
				if missing.where == nil || slices.Contains(missing.where[route], method) {
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
