package osb

import (
	"net/http"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/environment-broker/environment-broker/test/harness"
)

func rowCatalogHasServices(r *row) {
	got := r.want("the catalog", r.get("/v2/catalog"), http.StatusOK)
	if services, isArray := got.Body["services"].([]any); !isArray || len(services) == 0 {
		r.Errorf("services is %T", got.Body["services"])
	}
}

func rowOfferingIsComplete(r *row) {
	for _, offering := range r.catalog() {
		if offering.Name == "" || offering.ID == "" || offering.Description == "" || offering.Bindable == nil || offering.Plans == nil {
			r.Errorf("offering %q lacks a field", offering.Name)
		}
	}
}

func rowOfferingNamesAreUnique(r *row) {
	names := map[string]bool{}

	for _, offering := range r.catalog() {
		if names[offering.Name] || offering.Name == "" {
			r.Errorf("the name %q is empty or a duplicate", offering.Name)
		}

		names[offering.Name] = true
	}
}

var (
	guid     = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	cliName  = regexp.MustCompile(`^[A-Za-z0-9.-]*[A-Za-z0-9][A-Za-z0-9.-]*$`)
	semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
)

func rowCatalogIDsAreUnique(r *row) {
	seen := map[string]bool{}
	check := func(id string) {
		if !guid.MatchString(id) || seen[id] {
			r.Errorf("the ID %q is not a GUID, or a duplicate", id)
		}

		seen[id] = true
	}

	for _, offering := range r.catalog() {
		check(offering.ID)

		for _, plan := range offering.Plans {
			check(plan.ID)
		}
	}
}

func rowOfferingsAndPlansAreDescribed(r *row) {
	r.eachPlan(func(offering offering, plan plan) {
		if offering.Description == "" || plan.Description == "" {
			r.Errorf("offering %s, plan %s: the description is missing", offering.Name, plan.Name)
		}
	})
}

func rowOfferingHasPlans(r *row) {
	for _, offering := range r.catalog() {
		if len(offering.Plans) == 0 {
			r.Errorf("%s has no plan", offering.Name)
		}
	}
}

func rowPlanNamesAreUnique(r *row) {
	for _, offering := range r.catalog() {
		names := map[string]bool{}

		for _, plan := range offering.Plans {
			if plan.ID == "" || plan.Name == "" || names[plan.Name] {
				r.Errorf("plan %q has no ID or no name, or its name is a duplicate", plan.Name)
			}

			names[plan.Name] = true
		}
	}
}

func rowCatalogIDsNeverChange(r *row) {
	isolated := r.isolated()
	before := isolated.get("/v2/catalog").Raw

	isolated.RestartBroker()

	if after := isolated.get("/v2/catalog").Raw; after != before {
		r.Errorf("a restart changes the catalog:\nbefore %.2000s\nafter  %.2000s", before, after)
	}

	offered := map[string]string{}

	isolated.eachPlan(func(offering offering, plan plan) {
		offered[offering.Name], offered[plan.Name] = offering.ID, plan.ID
	})

	for name, id := range publishedIDs() {
		if offered[name] != id {
			r.Errorf("the ID of %s is %q, but %s is published", name, offered[name], id)
		}
	}

	for name := range offered {
		if publishedIDs()[name] == "" {
			r.Errorf("%s is offered, but publishedIDs lacks its ID", name)
		}
	}
}

// rowNamesFitCommandLine checks the characters and the length of names. Two names with underscores are exempt: platforms already
// use them.
func rowNamesFitCommandLine(r *row) {
	exempt := []string{"azure_lite", "own_cluster"}

	r.eachPlan(func(offering offering, plan plan) {
		for _, name := range []string{offering.Name, plan.Name} {
			if (!cliName.MatchString(name) || len(name) > 50) && !slices.Contains(exempt, name) {
				r.Errorf("%q does not fit on a command line", name)
			}
		}
	})
}

func rowCatalogTextsAreShort(r *row) {
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

// rowBindableIsTrue binds an instance of a bindable plan. rowUnbindablePlanIsRejected tests a plan that is not bindable.
func rowBindableIsTrue(r *row) {
	bindable := 0

	r.eachPlan(func(offering offering, plan plan) {
		if offering.bindable(plan) {
			bindable++
		}

		if plan.ID == harness.PlanAWS && !offering.bindable(plan) {
			r.Errorf("plan %s is not bindable", plan.Name)
		}
	})

	if bindable == 0 {
		r.Fatalf("no plan is bindable")
	}

	id := r.createInstance()
	r.want("a bind", r.bindNow(id, "b", r.binding()), http.StatusCreated)
}

// rowPlanUpdateableIsTrue tries to change an instance to every other plan. The catalog must allow exactly the changes that
// succeed.
func rowPlanUpdateableIsTrue(r *row) {
	lift := r.refuse(callUpgrade)
	defer lift()

	id := r.createInstance()

	r.eachPlan(func(offering offering, target plan) {
		if target.ID == harness.PlanAWS {
			return
		}

		changeable := slices.ContainsFunc(offering.Plans, func(each plan) bool { return each.ID == harness.PlanAWS && offering.changeable(each) })
		got := r.update(id, encode(fields{"service_id": harness.ServiceID, "plan_id": target.ID}))

		switch {
		case got.Status == http.StatusAccepted && changeable:
			r.waitForEnd(harness.InstancePath(id), got.Text("operation"))
		case got.Status == http.StatusAccepted:
			r.Errorf("the plan can be changed to %s, but the catalog denies it", target.Name)
		default:
			r.want("a change to "+target.Name, got, http.StatusUnprocessableEntity)
		}
	})
}

func rowInstancesRetrievableIsTrue(r *row) {
	for _, offering := range r.catalog() {
		if !offering.InstancesRetrievable {
			r.Errorf("%s lacks instances_retrievable", offering.Name)
		}
	}

	r.want("a fetch", r.get(harness.InstancePath(r.createInstance())), http.StatusOK)
}

func rowBindingsRetrievableIsTrue(r *row) {
	for _, offering := range r.catalog() {
		if !offering.BindingsRetrievable {
			r.Errorf("%s lacks bindings_retrievable", offering.Name)
		}
	}

	r.createBinding(r.createInstance(), "b")
}

func rowContextUpdatesAllowedIsTrue(r *row) {
	for _, offering := range r.catalog() {
		if !offering.AllowContextUpdates {
			r.Errorf("%s lacks allow_context_updates", offering.Name)
		}
	}

	r.updateContext(r.createInstance(), fields{"platform": "cloudfoundry", "instance_name": "renamed"})
}

// updateContext updates only the context of an instance.
func (r *row) updateContext(id string, context fields) {
	r.Helper()

	got := r.wantOneOf("an update of the context", r.update(id, encode(fields{"service_id": harness.ServiceID, "context": context})),
		http.StatusOK, http.StatusAccepted)
	if got.Status == http.StatusAccepted {
		r.wantSucceeded(harness.InstancePath(id), got.Text("operation"))
	}
}

func rowRequiresKnownPermissions(r *row) {
	for _, offering := range r.catalog() {
		for _, permission := range offering.Requires {
			if !slices.Contains([]string{"syslog_drain", "route_forwarding", "volume_mount"}, permission) {
				r.Errorf("%s requires %q", offering.Name, permission)
			}
		}
	}
}

// rowRequiresNoPermission checks that no offering requires a permission: a cluster is not a log drain, a route service or a
// volume.
func rowRequiresNoPermission(r *row) {
	for _, offering := range r.catalog() {
		if len(offering.Requires) > 0 {
			r.Errorf("%s requires the unneeded permissions %v", offering.Name, offering.Requires)
		}
	}
}
