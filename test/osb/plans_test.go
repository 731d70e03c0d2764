package osb

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/environment-broker/environment-broker/test/harness"
)

// eachSchema calls visit with every schema in the catalog. place names the plan, the resource and the action.
func (r *row) eachSchema(visit func(place string, schema map[string]any)) {
	r.Helper()

	actionsOf := map[string][]string{"service_instance": {"create", "update"}, "service_binding": {"create"}}

	r.eachPlan(func(offering offering, plan plan) {
		for resource, actions := range actionsOf {
			for _, action := range actions {
				schema := plan.Schemas[resource][action].Parameters
				if schema == nil && (resource == "service_instance" || offering.bindable(plan)) {
					r.Errorf("plan %s has no schema for %s of %s", plan.Name, action, resource)
				}

				if schema != nil {
					visit(plan.Name+" "+resource+" "+action, schema)
				}
			}
		}
	})
}

func rowSchemasNameVersion(r *row) {
	r.eachSchema(func(place string, schema map[string]any) {
		if version, _ := schema["$schema"].(string); !strings.HasPrefix(version, "http://json-schema.org/") {
			r.Errorf("%s: $schema is %v", place, schema["$schema"])
		}
	})
}

func rowSchemasAreSelfContained(r *row) {
	reference := regexp.MustCompile(`"\$ref":"([^"]*)"`)

	r.eachSchema(func(place string, schema map[string]any) {
		for _, found := range reference.FindAllStringSubmatch(encode(schema), -1) {
			if !strings.HasPrefix(found[1], "#") {
				r.Errorf("%s refers to %s", place, found[1])
			}
		}
	})
}

func rowSchemasAreSmall(r *row) {
	r.eachSchema(func(place string, schema map[string]any) {
		if size := len(encode(schema)); size > 64*1024 {
			r.Errorf("%s has %d bytes", place, size)
		}
	})
}

func rowSchemasAreValid(r *row) {
	r.eachSchema(func(place string, schema map[string]any) {
		compiler := jsonschema.NewCompiler()

		document, err := jsonschema.UnmarshalJSON(strings.NewReader(encode(schema)))
		if err != nil {
			r.Fatalf("%s: %v", place, err)
		}

		if err := compiler.AddResource("mem:///schema", document); err != nil {
			r.Fatalf("%s: %v", place, err)
		}

		compiled, err := compiler.Compile("mem:///schema")
		if err != nil {
			r.Fatalf("%s is not a schema: %v", place, err)
		}

		if place == "aws service_instance create" {
			if err := compiled.Validate(map[string]any{"region": "eu-west-1"}); err != nil {
				r.Errorf("%s rejects an example: %v", place, err)
			}
		}
	})
}

func rowMaintenanceVersionIsSemantic(r *row) {
	r.eachPlan(func(_ offering, plan plan) {
		if plan.MaintenanceInfo == nil || !semantic.MatchString(plan.MaintenanceInfo.Version) {
			r.Errorf("plan %s: maintenance_info is %+v", plan.Name, plan.MaintenanceInfo)
		}
	})
}

func rowMaintenanceIsDescribed(r *row) {
	r.eachPlan(func(_ offering, plan plan) {
		if plan.MaintenanceInfo == nil || plan.MaintenanceInfo.Description == "" {
			r.Errorf("plan %s does not describe its maintenance", plan.Name)
		}
	})
}

func rowPollingDurationExceedsOperations(r *row) {
	longest := int(r.Settings.Engine.OperationTimeout / time.Second)

	r.eachPlan(func(_ offering, plan plan) {
		if plan.MaximumPollingDuration == nil || *plan.MaximumPollingDuration <= longest {
			r.Errorf("plan %s: maximum_polling_duration is %v, operations may take %d s", plan.Name, plan.MaximumPollingDuration, longest)
		}
	})
}

// rowBindingRotatableIsTrue checks that exactly the bindable plans allow clients to rotate bindings.
func rowBindingRotatableIsTrue(r *row) {
	rotatable := 0

	r.eachPlan(func(offering offering, plan plan) {
		if plan.BindingRotatable {
			rotatable++
		}

		if plan.BindingRotatable != offering.bindable(plan) {
			r.Errorf("plan %s: binding_rotatable is %t, bindable %t", plan.Name, plan.BindingRotatable, offering.bindable(plan))
		}
	})

	if rotatable == 0 {
		r.Errorf("no plan rotates its bindings")
	}
}

func rowCatalogHasETag(r *row) {
	first := r.want("the catalog", r.get("/v2/catalog"), http.StatusOK)
	tag := first.Header.Get("ETag")

	if tag == "" {
		r.Fatalf("the catalog has no ETag")
	}

	for _, match := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
		got := r.want("a matching If-None-Match: "+match, r.do(harness.Call{
			Method: http.MethodGet, Path: "/v2/catalog", Header: header("If-None-Match", match),
		}), http.StatusNotModified)
		if got.Raw != "" {
			r.Errorf("the 304 has a body: %s", got.Raw)
		}
	}

	again := r.want("another If-None-Match", r.do(harness.Call{
		Method: http.MethodGet, Path: "/v2/catalog", Header: header("If-None-Match", `"other"`),
	}), http.StatusOK)
	if again.Header.Get("ETag") != tag || again.Raw != first.Raw {
		r.Errorf("the response differs although the catalog is the same")
	}
}

func rowCatalogMetadataFollowsProfile(r *row) {
	for _, offering := range r.catalog() {
		for _, name := range []string{"displayName", "imageUrl", "longDescription", "providerDisplayName", "documentationUrl", "supportUrl"} {
			if value, given := offering.Metadata[name]; given {
				if text, isText := value.(string); !isText || text == "" {
					r.Errorf("%s of %s is %v", name, offering.Name, value)
				}
			}
		}

		for _, plan := range offering.Plans {
			r.checkMetadata(plan)
		}
	}
}

// checkMetadata checks the metadata of a plan against the profile of the specification.
func (r *row) checkMetadata(plan plan) {
	r.Helper()

	if name, isText := plan.Metadata["displayName"].(string); !isText || name == "" {
		r.Errorf("plan %s has no displayName", plan.Name)
	}

	bullets, _ := plan.Metadata["bullets"].([]any)
	for _, bullet := range bullets {
		if text, isText := bullet.(string); !isText || text == "" {
			r.Errorf("plan %s: a bullet is %v", plan.Name, bullet)
		}
	}

	costs, _ := plan.Metadata["costs"].([]any)
	for _, cost := range costs {
		entry, _ := cost.(map[string]any)
		amount, isObject := entry["amount"].(map[string]any)
		unit, isText := entry["unit"].(string)

		if !isObject || len(amount) == 0 || !isText || unit == "" {
			r.Errorf("plan %s: a cost is %v", plan.Name, cost)
		}
	}
}
