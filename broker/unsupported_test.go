package broker_test

import (
	"testing"
)

func TestF1F2F5F6F19UpdatesAreNotOffered(t *testing.T) {
	cases := map[string]struct {
		reason string
		id     string
		body   string
		status int
		code   string
	}{
		"NoService":      {"F1: service_id is needed", instanceID, `{}`, 400, ""},
		"UnknownService": {"F1: of the catalog", instanceID, `{"service_id":"x"}`, 400, ""},
		"UnknownPlan":    {"F2: a plan of the offering", instanceID, `{"service_id":"` + serviceID + `","plan_id":"x"}`, 400, ""},
		"PlanNumber":     {"F5: plan_id is a string", instanceID, `{"service_id":"` + serviceID + `","plan_id":5}`, 400, ""},
		"OtherPlan":      {"F6, F7: plans cannot be changed", instanceID, `{"service_id":"` + serviceID + `","plan_id":"` + planGCP + `"}`, 422, "PlanChangeNotSupported"},
		"Parameters":     {"F6: nor parameters", instanceID, `{"service_id":"` + serviceID + `","parameters":{"autoScalerMin":5}}`, 422, ""},
		"Unknown":        {"F19: an unknown instance", "unknown", `{"service_id":"` + serviceID + `"}`, 404, ""},
	}

	b := newBench(t)
	b.provisioned(instanceID)
	before := b.get(instanceID)

	for name, test := range cases {
		b.want(name+": "+test.reason, b.do(call{
			method: "PATCH", path: path(test.id) + "?accepts_incomplete=true", body: test.body,
		}), test.status, test.code)
	}

	if after := b.get(instanceID); after.Raw != before.Raw {
		b.Errorf("F13: before %s\nafter %s", before.Raw, after.Raw)
	}

	b.want("F19: nothing was made", b.poll("unknown", ""), 404)
}
