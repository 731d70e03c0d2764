package osb

import (
	"net/http"
	"regexp"
	"slices"
	"unicode/utf8"
)

func catalogRows() map[string]func(*row) {
	return map[string]func(*row){
		"B1": b1, "B2": b2, "B3": b3, "B4": b4, "B5": b5, "B6": b6, "B7": b7, "B8": b8, "B9": b9, "B10": b10, "B11": b11, "B12": b12,
		"B13": b13, "B14": b14, "B15": b15, "B16": b16, "B17": b17, "B18": b18, "B19": b19, "B20": b20, "B21": b21, "B22": b22,
		"B23": b23, "B24": b24, "B25": b25, "B26": b26, "B27": b27,
	}
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
