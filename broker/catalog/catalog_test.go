package catalog_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

type published struct {
	Services []struct {
		ID, Name, Description string
		Bindable              *bool
		PlanUpdateable        *bool `json:"plan_updateable"`
		InstancesRetrievable  bool  `json:"instances_retrievable"`
		BindingsRetrievable   bool  `json:"bindings_retrievable"`
		AllowContextUpdates   bool  `json:"allow_context_updates"`
		Requires              []string
		Metadata              map[string]any
		Plans                 []publishedPlan
	}
}

type publishedPlan struct {
	ID, Name, Description  string
	Free                   *bool
	Bindable               *bool
	PlanUpdateable         *bool `json:"plan_updateable"`
	BindingRotatable       bool  `json:"binding_rotatable"`
	Metadata               map[string]any
	Schemas                map[string]map[string]map[string]map[string]any
	MaximumPollingDuration int               `json:"maximum_polling_duration"`
	MaintenanceInfo        map[string]string `json:"maintenance_info"`
}

func read(t *testing.T) published {
	t.Helper()

	var got published

	body := load(t).Published().Body
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}

	return got
}

func TestPublishedService(t *testing.T) {
	t.Parallel()

	got := read(t)
	if len(got.Services) != 1 {
		t.Fatalf("services: want 1, got %d", len(got.Services))
	}

	service := got.Services[0]
	if service.Bindable == nil || !*service.Bindable || service.PlanUpdateable == nil || !*service.PlanUpdateable {
		t.Error("V3: bindable and plan_updateable must be true, because Service Catalog reads only those of the service; each plan states whether it can be changed")
	}

	if !service.InstancesRetrievable || !service.BindingsRetrievable || !service.AllowContextUpdates || len(service.Requires) > 0 {
		t.Errorf("the service announces unsupported features: %+v", service)
	}

	encoded, isSVG := strings.CutPrefix(fmt.Sprint(service.Metadata["imageUrl"]), "data:image/svg+xml;base64,")
	picture := struct {
		XMLName xml.Name `xml:"svg"`
	}{}

	if image, err := base64.StdEncoding.DecodeString(encoded); !isSVG || err != nil || xml.Unmarshal(image, &picture) != nil {
		t.Errorf("marketplaces cannot show the icon %q: %v", image, err)
	}

	// Row B9 of docs/contributor/osb-conformance.md forbids underscores in names. The pattern allows them because of
	// azure_lite and own_cluster, which platforms have stored.
	cli := regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

	for _, plan := range service.Plans {
		if !cli.MatchString(plan.Name) || plan.Description == "" || plan.Free == nil || plan.Metadata["displayName"] == "" {
			t.Errorf("invalid plan: %+v", plan)
		}

		if plan.ID == planTrial || plan.ID == planFree || plan.ID == planOwnCluster {
			if _, priced := plan.Metadata["costs"]; !*plan.Free || !priced {
				t.Errorf("plan %s: free is %t, metadata %v", plan.Name, *plan.Free, plan.Metadata)
			}
		} else if *plan.Free {
			t.Errorf("plan %s has no costs", plan.Name)
		}

		own := plan.ID == planOwnCluster
		if plan.Bindable == nil || *plan.Bindable == own || plan.BindingRotatable == own {
			t.Errorf("B11, B25: plan %s: bindable and binding_rotatable", plan.Name)
		}

		if plan.PlanUpdateable == nil || *plan.PlanUpdateable != (plan.ID == planAzureLite) {
			t.Errorf("B12: plan %s: plan_updateable", plan.Name)
		}

		if plan.MaximumPollingDuration != 25*60*60 {
			t.Errorf("B24: plan %s: polling ends after %d s, want an hour after the longest operation",
				plan.Name, plan.MaximumPollingDuration)
		}

		if plan.MaintenanceInfo["version"] != "1.0.0" || plan.MaintenanceInfo["description"] == "" {
			t.Errorf("B22, B23: plan %s: maintenance_info %v", plan.Name, plan.MaintenanceInfo)
		}
	}
}

func TestTextsAreShort(t *testing.T) {
	t.Parallel()

	for _, service := range read(t).Services {
		texts := []string{service.Name, service.Description}
		for _, plan := range service.Plans {
			texts = append(texts, plan.Name, plan.Description, plan.MaintenanceInfo["description"])
		}

		for _, text := range texts {
			if utf8.RuneCountInString(text) > 255 {
				t.Errorf("the text is longer than 255 characters: %s", text)
			}
		}
	}
}

func TestSchemas(t *testing.T) {
	t.Parallel()

	slots := map[string][]string{"service_instance": {"create", "update"}, "service_binding": {"create"}}

	for _, plan := range read(t).Services[0].Plans {
		for resource, actions := range slots {
			for _, action := range actions {
				checkSchema(t, plan.Name+" "+resource+" "+action, plan.Schemas[resource][action]["parameters"])
			}
		}
	}
}

func checkSchema(t *testing.T, place string, value any) {
	t.Helper()

	schema, ok := value.(map[string]any)
	if !ok {
		t.Errorf("B21: %s is a %T, not an object", place, value)

		return
	}

	if schema["$schema"] != "http://json-schema.org/draft-04/schema#" || schema["type"] != "object" {
		t.Errorf("B18: %s: $schema %v, type %v", place, schema["$schema"], schema["type"])
	}

	encoded, err := json.Marshal(schema)
	if err != nil || len(encoded) > 64*1024 || strings.Contains(string(encoded), `"$ref"`) {
		t.Errorf("B19, B20: %s: %d bytes, %v", place, len(encoded), err)
	}

	if schema["additionalProperties"] != false {
		t.Errorf("%s accepts unknown parameters", place)
	}

	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(encoded)))
	if err != nil {
		t.Fatal(err)
	}

	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("mem:///schema", document); err != nil {
		t.Fatal(err)
	}

	if _, err := compiler.Compile("mem:///schema"); err != nil {
		t.Errorf("B21: %s does not compile: %v", place, err)
	}
}

func TestNoPlanTakesATargetSecret(t *testing.T) {
	t.Parallel()

	if strings.Contains(string(load(t).Published().Body), "targetSecret") {
		t.Error("a tenant could choose the credentials of its cluster")
	}
}
