package broker_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRejectedUpdates(t *testing.T) {
	cases := map[string]struct {
		reason     string
		id         string
		fields     map[string]any
		status     int
		code       string
		repeatable bool
	}{
		"NoService":         {"F1: service_id is required", instanceID, with("service_id", ""), 400, "", false},
		"UnknownService":    {"F1: service_id must be in the catalog", instanceID, with("service_id", "x"), 400, "", false},
		"UnknownPlan":       {"F2: plan_id must belong to the service", instanceID, with("plan_id", "x"), 400, "", false},
		"EmptyPlan":         {"F3: plan_id must not be empty", instanceID, with("plan_id", ""), 400, "", false},
		"PreviousText":      {"F3: previous_values must be an object", instanceID, with("previous_values", ""), 400, "", false},
		"PreviousNumber":    {"F3: previous_values must be an object", instanceID, with("previous_values", 0), 400, "", false},
		"PreviousList":      {"F3: previous_values must be an object", instanceID, with("previous_values", []any{}), 400, "", false},
		"PreviousFlag":      {"F3: previous_values must be an object", instanceID, with("previous_values", true), 400, "", false},
		"PlanNumber":        {"F5: plan_id must be a string", instanceID, with("plan_id", 5), 400, "", false},
		"ContextText":       {"F5: context must be an object", instanceID, with("context", "x"), 400, "", false},
		"ParametersList":    {"F5: parameters must be an object", instanceID, with("parameters", []any{}), 400, "", false},
		"ActiveText":        {"F5: active must be a boolean", instanceID, with("context", with("active", "no")), 400, "", false},
		"AccountControl":    {"accounts must be printable", instanceID, with("context", with("globalaccount_id", "a\nb")), 400, "", false},
		"OtherPlan":         {"F6, F7: the catalog lists the allowed plan changes", instanceID, with("plan_id", planGCP), 422, "PlanChangeNotSupported", false},
		"Maintenance":       {"F12: the version must be that of the catalog", instanceID, with("maintenance_info", with("version", "9.9.9")), 422, "MaintenanceInfoConflict", false},
		"UnknownParameter":  {"F17: unknown parameters are rejected", instanceID, with("parameters", with("targetSecret", "x")), 400, "", false},
		"Region":            {"F17: the region cannot change", instanceID, with("parameters", with("region", "us-east-1")), 400, "", false},
		"OutOfBounds":       {"F17: the plan's bounds apply", instanceID, with("parameters", with("autoScalerMax", 100000)), 400, "", false},
		"AgainstTheCluster": {"F17: parameters are checked together with the stored ones", instanceID, with("parameters", with("autoScalerMax", 3)), 400, "", false},
		"Suspension":        {"instances of plans without a lifetime cannot be suspended", instanceID, with("context", with("active", false)), 422, "", false},
		"Movement":          {"account movement is rejected, not ignored", instanceID, with("context", with("globalaccount_id", "other")), 422, "", false},
		"Unknown":           {"F19: an unknown instance", "unknown", nil, 404, "", false},
	}

	b := newFixture(t)
	b.provisioned(instanceID)

	before := b.get(instanceID)

	for name, test := range cases {
		got := b.want(name+": "+test.reason, b.patch(test.id, test.fields), test.status, test.code)
		if got.Body["update_repeatable"] != test.repeatable {
			b.Errorf("F15: %s: update_repeatable is %v", name, got.Body["update_repeatable"])
		}
	}

	got := b.do(call{method: "PATCH", path: path(instanceID), body: patching(with("parameters", with("autoScalerMin", 5)))})
	b.want("F11: updates of the cluster are asynchronous", got, 422, "AsyncRequired")

	if after := b.get(instanceID); after.Raw != before.Raw {
		b.Errorf("F13: -before +after\n%s", cmp.Diff(before.Body, after.Body))
	}

	if len(b.carried(instanceID)) != 1 {
		b.Error("F13: a rejected update started an operation")
	}

	b.want("F19: no instance was created", b.poll("unknown", ""), 404)
}

func TestFailedInstanceIsNotUpdated(t *testing.T) {
	b := newFixture(t)

	creation := b.want("a creation", b.put("creating", order()), 202).text("operation")
	fields := with("parameters", with("autoScalerMin", 5))

	got := b.want("C4: during the creation", b.patch("creating", fields), 422, "ConcurrencyError")
	if got.Body["update_repeatable"] != true {
		b.Errorf("F15: the update is not reported as repeatable: %s", got.Raw)
	}

	b.move(creation, "failed")
	b.want("F6: after a failed creation", b.patch("creating", fields), 422, "")

	b.provisioned(instanceID)

	deletion := b.want("a deletion", b.remove(instanceID), 202).text("operation")
	b.want("C4: during the deletion", b.patch(instanceID, fields), 422, "ConcurrencyError")
	b.move(deletion, "failed")
	b.want("F6: after a failed deletion", b.patch(instanceID, fields), 422, "")

	got = b.want("C13: reported to the platform", b.poll(instanceID, deletion), 200)
	if diff := cmp.Diff(map[string]any{"state": "failed", "description": got.text("description"), "instance_usable": false}, got.Body); diff != "" {
		b.Errorf("C13: -want +got\n%s", diff)
	}

	b.deleted(instanceID)
	b.want("F19: after the deletion", b.patch(instanceID, fields), 404)
}
