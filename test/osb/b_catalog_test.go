package osb

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func catalogRows() map[string]func(*row) {
	return map[string]func(*row){
		"B1": b1, "B2": b2, "B3": b3, "B4": b4, "B5": b5, "B6": b6, "B7": b7, "B8": b8, "B9": b9, "B10": b10, "B11": b11, "B12": b12,
		"B13": b13, "B14": b14, "B15": b15, "B16": b16, "B17": b17, "B18": b18, "B19": b19, "B20": b20, "B21": b21, "B22": b22,
		"B23": b23, "B24": b24, "B25": b25, "B26": b26, "B27": b27,
	}
}

// offering is a service of the catalog.
type offering struct {
	ID, Name, Description string
	Bindable              *bool
	PlanUpdateable        bool `json:"plan_updateable"`
	InstancesRetrievable  bool `json:"instances_retrievable"`
	BindingsRetrievable   bool `json:"bindings_retrievable"`
	AllowContextUpdates   bool `json:"allow_context_updates"`
	Requires              []string
	DashboardClient       map[string]any `json:"dashboard_client"`
	Metadata              map[string]any
	Plans                 []plan
}

// plan is a plan of the catalog.
type plan struct {
	ID, Name, Description string
	Free                  *bool
	Bindable              *bool
	PlanUpdateable        *bool `json:"plan_updateable"`
	BindingRotatable      bool  `json:"binding_rotatable"`
	Metadata              map[string]any
	Schemas               map[string]map[string]struct {
		Parameters map[string]any
	}
	MaximumPollingDuration *int                                   `json:"maximum_polling_duration"`
	MaintenanceInfo        *struct{ Version, Description string } `json:"maintenance_info"`
}

// bindable says whether instances of the plan can be bound: the plan's word counts more than the offering's.
func (o offering) bindable(plan plan) bool {
	if plan.Bindable != nil {
		return *plan.Bindable
	}

	return *o.Bindable
}

// changeable says whether an instance of the plan may get another plan.
func (o offering) changeable(plan plan) bool {
	if plan.PlanUpdateable != nil {
		return *plan.PlanUpdateable
	}

	return o.PlanUpdateable
}

func (v visitor) catalog() []offering {
	v.Helper()

	var told struct{ Services []offering }

	got := v.want("the catalog", v.get("/v2/catalog"), http.StatusOK)
	if err := json.Unmarshal([]byte(got.Raw), &told); err != nil {
		v.Fatalf("the catalog cannot be read: %v", err)
	}

	return told.Services
}

// eachPlan calls the function with every plan.
func (v visitor) eachPlan(look func(offering, plan)) {
	v.Helper()

	for _, offering := range v.catalog() {
		for _, plan := range offering.Plans {
			look(offering, plan)
		}
	}
}

func maintenanceVersion(r *row, planID string) string {
	version := ""

	r.eachPlan(func(_ offering, plan plan) {
		if plan.ID == planID && plan.MaintenanceInfo != nil {
			version = plan.MaintenanceInfo.Version
		}
	})

	return version
}

func b1(r *row) {
	got := r.want("the catalog", r.get("/v2/catalog"), http.StatusOK)
	if services, isArray := got.Body["services"].([]any); !isArray || len(services) == 0 {
		r.Errorf("services is %T", got.Body["services"])
	}
}

func b2(r *row) {
	for _, offering := range r.catalog() {
		if offering.Name == "" || offering.ID == "" || offering.Description == "" || offering.Bindable == nil || offering.Plans == nil {
			r.Errorf("offering %q lacks a field", offering.Name)
		}
	}
}

func b3(r *row) {
	names := map[string]bool{}

	for _, offering := range r.catalog() {
		if names[offering.Name] || offering.Name == "" {
			r.Errorf("the name %q is empty or there twice", offering.Name)
		}

		names[offering.Name] = true
	}
}

var (
	guid     = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	cliName  = regexp.MustCompile(`^[A-Za-z0-9.-]*[A-Za-z0-9][A-Za-z0-9.-]*$`)
	semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
)

func b4(r *row) {
	seen := map[string]bool{}
	look := func(id string) {
		if !guid.MatchString(id) || seen[id] {
			r.Errorf("the id %q is no GUID or there twice", id)
		}

		seen[id] = true
	}

	for _, offering := range r.catalog() {
		look(offering.ID)

		for _, plan := range offering.Plans {
			look(plan.ID)
		}
	}
}

func b5(r *row) {
	r.eachPlan(func(offering offering, plan plan) {
		if offering.Description == "" || plan.Description == "" {
			r.Errorf("%s, %s: there is no description", offering.Name, plan.Name)
		}
	})
}

func b6(r *row) {
	for _, offering := range r.catalog() {
		if len(offering.Plans) == 0 {
			r.Errorf("%s has no plan", offering.Name)
		}
	}
}

func b7(r *row) {
	for _, offering := range r.catalog() {
		names := map[string]bool{}

		for _, plan := range offering.Plans {
			if plan.ID == "" || plan.Name == "" || names[plan.Name] {
				r.Errorf("plan %q has no id or no name, or its name is there twice", plan.Name)
			}

			names[plan.Name] = true
		}
	}
}

// published are the ids that platforms have stored, by the names of offering and plans.
func published() map[string]string {
	return map[string]string{
		"kymaruntime": serviceID, "aws": planAWS, "azure": planAzure, "gcp": planGCP, "trial": planTrial,
		"azure_lite":          "8cb22518-aa26-44c5-91a0-e669ec9bf443",
		"sap-converged-cloud": "03b812ac-c991-4528-b5bd-08b303523a63",
		"free":                "b1a5764e-2ea1-4f95-94c0-2b4538b37b55",
		"own_cluster":         "03e3cb66-a4c6-4c6a-b4b0-5d42224debea",
		"preview":             "5cb3d976-b85c-42ea-a636-79cadda109a9",
	}
}

func b8(r *row) {
	own := r.own()
	before := own.get("/v2/catalog").Raw

	own.restart(r.t)

	if after := own.get("/v2/catalog").Raw; after != before {
		r.Errorf("the catalog is another one after a restart:\nbefore %.2000s\nafter  %.2000s", before, after)
	}

	offered := map[string]string{}

	own.eachPlan(func(offering offering, plan plan) {
		offered[offering.Name], offered[plan.Name] = offering.ID, plan.ID
	})

	for name, id := range published() {
		if offered[name] != id {
			r.Errorf("the id of %s is %q, published was %s", name, offered[name], id)
		}
	}

	for name := range offered {
		if published()[name] == "" {
			r.Errorf("%s is offered, and its id is not in the list of those that never change", name)
		}
	}
}

// b9 has exceptions: names that are public since long, and are kept for those who use them.
func b9(r *row) {
	underscored := []string{"azure_lite", "own_cluster"}

	r.eachPlan(func(offering offering, plan plan) {
		for _, name := range []string{offering.Name, plan.Name} {
			if (!cliName.MatchString(name) || len(name) > 50) && !slices.Contains(underscored, name) {
				r.Errorf("%q is not fit for a command line", name)
			}
		}
	})
}

func b10(r *row) {
	r.eachPlan(func(offering offering, plan plan) {
		texts := []string{offering.Name, offering.Description, plan.Name, plan.Description}
		if plan.MaintenanceInfo != nil {
			texts = append(texts, plan.MaintenanceInfo.Description)
		}

		for _, text := range texts {
			if utf8.RuneCountInString(text) > 255 {
				r.Errorf("longer than 255 characters: %s", text)
			}
		}
	})
}

// b11 binds an instance of a plan that says it can be bound. The other side is row G21.
func b11(r *row) {
	bindable := 0

	r.eachPlan(func(offering offering, plan plan) {
		if offering.bindable(plan) {
			bindable++
		}

		if plan.ID == planAWS && !offering.bindable(plan) {
			r.Errorf("plan %s is not bindable", plan.Name)
		}
	})

	if bindable == 0 {
		r.Fatalf("no plan is bindable")
	}

	id := r.ready()
	r.want("a bind", r.bindNow(id, "b", r.binding()), http.StatusCreated)
}

// b12 tries to change every plan into every other one: never where the catalog says that the plan stays.
func b12(r *row) {
	lift := r.refuse(callUpgrade)
	defer lift()

	id := r.ready()

	r.eachPlan(func(offering offering, target plan) {
		if target.ID == planAWS {
			return
		}

		may := slices.ContainsFunc(offering.Plans, func(each plan) bool { return each.ID == planAWS && offering.changeable(each) })
		got := r.update(id, encode(fields{"service_id": serviceID, "plan_id": target.ID}))

		switch {
		case got.Status == http.StatusAccepted && may:
			r.ended(instancePath(id), got.text("operation"))
		case got.Status == http.StatusAccepted:
			r.Errorf("the plan can be changed to %s, and the catalog says it cannot", target.Name)
		default:
			r.want("a change to "+target.Name, got, http.StatusUnprocessableEntity)
		}
	})
}

func b13(r *row) {
	for _, offering := range r.catalog() {
		if !offering.InstancesRetrievable {
			r.Errorf("%s does not say that its instances can be fetched", offering.Name)
		}
	}

	r.want("a fetch", r.get(instancePath(r.ready())), http.StatusOK)
}

func b14(r *row) {
	for _, offering := range r.catalog() {
		if !offering.BindingsRetrievable {
			r.Errorf("%s does not say that its bindings can be fetched", offering.Name)
		}
	}

	r.bound(r.ready(), "b")
}

func b15(r *row) {
	for _, offering := range r.catalog() {
		if !offering.AllowContextUpdates {
			r.Errorf("%s does not say that its context can be updated", offering.Name)
		}
	}

	r.contextUpdated(r.ready(), fields{"platform": "cloudfoundry", "instance_name": "renamed"})
}

// contextUpdated sends a context alone.
func (r *row) contextUpdated(id string, context fields) {
	r.Helper()

	got := r.wantOneOf("an update of the context", r.update(id, encode(fields{"service_id": serviceID, "context": context})),
		http.StatusOK, http.StatusAccepted)
	if got.Status == http.StatusAccepted {
		r.succeeded(instancePath(id), got.text("operation"))
	}
}

func b16(r *row) {
	for _, offering := range r.catalog() {
		for _, permission := range offering.Requires {
			if !slices.Contains([]string{"syslog_drain", "route_forwarding", "volume_mount"}, permission) {
				r.Errorf("%s requires %q", offering.Name, permission)
			}
		}
	}
}

// b17: a cluster is no log drain, no route service and no volume.
func b17(r *row) {
	for _, offering := range r.catalog() {
		if len(offering.Requires) > 0 {
			r.Errorf("%s requires %v without need", offering.Name, offering.Requires)
		}
	}
}

// eachSchema calls the function with every schema of the catalog.
func (r *row) eachSchema(look func(place string, schema map[string]any)) {
	r.Helper()

	slots := map[string][]string{"service_instance": {"create", "update"}, "service_binding": {"create"}}

	r.eachPlan(func(offering offering, plan plan) {
		for resource, actions := range slots {
			for _, action := range actions {
				schema := plan.Schemas[resource][action].Parameters
				if schema == nil && (resource == "service_instance" || offering.bindable(plan)) {
					r.Errorf("plan %s has no schema for %s of %s", plan.Name, action, resource)
				}

				if schema != nil {
					look(plan.Name+" "+resource+" "+action, schema)
				}
			}
		}
	})
}

func b18(r *row) {
	r.eachSchema(func(place string, schema map[string]any) {
		if version, _ := schema["$schema"].(string); !strings.HasPrefix(version, "http://json-schema.org/") {
			r.Errorf("%s: $schema is %v", place, schema["$schema"])
		}
	})
}

func b19(r *row) {
	reference := regexp.MustCompile(`"\$ref":"([^"]*)"`)

	r.eachSchema(func(place string, schema map[string]any) {
		for _, found := range reference.FindAllStringSubmatch(encode(schema), -1) {
			if !strings.HasPrefix(found[1], "#") {
				r.Errorf("%s refers to %s", place, found[1])
			}
		}
	})
}

func b20(r *row) {
	r.eachSchema(func(place string, schema map[string]any) {
		if size := len(encode(schema)); size > 64*1024 {
			r.Errorf("%s has %d bytes", place, size)
		}
	})
}

func b21(r *row) {
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
			r.Fatalf("%s is no schema: %v", place, err)
		}

		if place == "aws service_instance create" {
			if err := compiled.Validate(map[string]any{"region": "eu-west-1"}); err != nil {
				r.Errorf("%s refuses an example: %v", place, err)
			}
		}
	})
}

func b22(r *row) {
	r.eachPlan(func(_ offering, plan plan) {
		if plan.MaintenanceInfo == nil || !semantic.MatchString(plan.MaintenanceInfo.Version) {
			r.Errorf("plan %s: maintenance_info is %+v", plan.Name, plan.MaintenanceInfo)
		}
	})
}

func b23(r *row) {
	r.eachPlan(func(_ offering, plan plan) {
		if plan.MaintenanceInfo == nil || plan.MaintenanceInfo.Description == "" {
			r.Errorf("plan %s does not tell what maintenance does", plan.Name)
		}
	})
}

func b24(r *row) {
	longest := int(r.settings.Engine.OperationTimeout / time.Second)

	r.eachPlan(func(_ offering, plan plan) {
		if plan.MaximumPollingDuration == nil || *plan.MaximumPollingDuration <= longest {
			r.Errorf("plan %s: maximum_polling_duration is %v, operations may take %d s", plan.Name, plan.MaximumPollingDuration, longest)
		}
	})
}

// b25: a plan rotates its bindings exactly if it has any.
func b25(r *row) {
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

func b26(r *row) {
	first := r.want("the catalog", r.get("/v2/catalog"), http.StatusOK)
	tag, modified := first.Header.Get("ETag"), first.Header.Get("Last-Modified")

	if tag == "" {
		r.Fatalf("the catalog has no entity tag")
	}

	for _, known := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
		got := r.want("it is known: "+known, r.do(call{
			method: http.MethodGet, path: "/v2/catalog", header: header("If-None-Match", known),
		}), http.StatusNotModified)
		if got.Raw != "" {
			r.Errorf("there is a body: %s", got.Raw)
		}
	}

	again := r.want("another one is known", r.do(call{
		method: http.MethodGet, path: "/v2/catalog", header: header("If-None-Match", `"other"`),
	}), http.StatusOK)
	if again.Header.Get("ETag") != tag || again.Header.Get("Last-Modified") != modified || again.Raw != first.Raw {
		r.Errorf("nothing has changed, and the answer is another one")
	}

	if modified != "" {
		r.want("it is known by its date", r.do(call{
			method: http.MethodGet, path: "/v2/catalog", header: header("If-Modified-Since", modified),
		}), http.StatusNotModified)
		r.want("an old one is known", r.do(call{
			method: http.MethodGet, path: "/v2/catalog", header: header("If-Modified-Since", "Mon, 02 Jan 2006 15:04:05 GMT"),
		}), http.StatusOK)
	}
}

func b27(r *row) {
	for _, offering := range r.catalog() {
		for _, name := range []string{"displayName", "imageUrl", "longDescription", "providerDisplayName", "documentationUrl", "supportUrl"} {
			if value, given := offering.Metadata[name]; given {
				if text, isText := value.(string); !isText || text == "" {
					r.Errorf("%s of %s is %v", name, offering.Name, value)
				}
			}
		}

		for _, plan := range offering.Plans {
			r.profiled(plan)
		}
	}
}

// profiled holds the metadata of a plan against the profile.
func (r *row) profiled(plan plan) {
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
