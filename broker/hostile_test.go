package broker_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// repeated returns a JSON array of count equal elements.
func repeated(element string, count int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", count), ",") + "]"
}

// TestHostileParameters sends parameters that once cost seconds of CPU time, gigabytes of memory, or a panic. Each must be
// refused with a short text, on every endpoint that reads parameters.
func TestHostileParameters(t *testing.T) {
	cases := map[string]struct {
		reason     string
		parameters string
	}{
		"HugeExponents":   {"each comparison of such numbers takes milliseconds", `{"administrators":` + repeated("1e999000", 20) + `}`},
		"PanicExponents":  {"the schema library panics", `{"administrators":` + repeated("1e1000001", 30) + `}`},
		"HugeBound":       {"the number is compared with the maximum", `{"autoScalerMax":1e999000}`},
		"ManyZeros":       {"each zero breaks a rule", `{"administrators":` + repeated("0", 500_000) + `}`},
		"FewerZeros":      {"below the limit of values", `{"administrators":` + repeated("0", 9000) + `}`},
		"ManyNames":       {"each name breaks a rule", `{` + unknownFields(4000) + `}`},
		"LongText":        {"texts have a limit", `{"name":"` + strings.Repeat("n", 900_000) + `"}`},
		"ManyTexts":       {"a cluster has at most 100 administrators", `{"administrators":` + distinct(5000) + `}`},
		"LongKubeconfig":  {"kubeconfigs have a limit", `{"kubeconfig":"` + strings.Repeat("n", 900_000) + `"}`},
		"DeepParameters":  {"nesting has a limit", `{"a":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`},
		"RepeatedField":   {"decoders disagree on repeated fields", `{"autoScalerMin":3,"autoScalerMin":3}`},
		"LongField":       {"names have a limit", `{"` + strings.Repeat("n", 100_000) + `":0}`},
		"InvisibleFields": {"escapes in responses are longer than the request", `{"` + strings.Repeat(`\u0001`, 250) + `":0}`},
	}

	b := newFixture(t)
	b.provisioned(instanceID)

	for name, test := range cases {
		body := fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"organization_guid":"o","space_guid":"s","parameters":%s}`, serviceID, planAWS, test.parameters)

		for _, call := range []call{
			{method: http.MethodPut, path: path("new") + "?accepts_incomplete=true"},
			{method: http.MethodPost, path: path("new") + "/validate"},
			{method: http.MethodPatch, path: path(instanceID) + "?accepts_incomplete=true"},
			{method: http.MethodPut, path: bindingOf(instanceID, "b1") + "?accepts_incomplete=true"},
		} {
			call.body = body

			got := b.send(call)
			if got.Status != http.StatusBadRequest && (call.method != http.MethodPost || got.Body["valid"] != false) {
				t.Errorf("%s: %s: %s %s: want a refusal, got %d %.300s", name, test.reason, call.method, call.path, got.Status, got.Raw)
			}

			if len(got.Raw) > 16<<10 {
				t.Errorf("%s: %s: %s %s: the response has %d bytes", name, test.reason, call.method, call.path, len(got.Raw))
			}
		}
	}

	b.want("nothing was created", b.get("new"), 404)

	if operations := b.carried(instanceID); len(operations) != 1 {
		t.Errorf("hostile updates started operations: %v", operations)
	}
}

// unknownFields returns count JSON fields whose names no plan has.
func unknownFields(count int) string {
	var fields strings.Builder
	for i := range count {
		fmt.Fprintf(&fields, `,"unknown%d":0`, i)
	}

	return strings.TrimPrefix(fields.String(), ",")
}

// distinct returns a JSON array of count distinct strings.
func distinct(count int) string {
	var texts strings.Builder
	for i := range count {
		fmt.Fprintf(&texts, `,"anna%d"`, i)
	}

	return "[" + strings.TrimPrefix(texts.String(), ",") + "]"
}

// TestViolationsAreBounded checks that a response lists 20 violations and the number of further ones.
func TestViolationsAreBounded(t *testing.T) {
	b := newFixture(t)

	got := b.want("many violations", b.validate("new", order(with("parameters", map[string]any{"administrators": make([]int, 50)}))), 200)

	errors, _ := got.Body["errors"].([]any)
	if len(errors) != 21 {
		t.Fatalf("want 20 violations and a count, got %d", len(errors))
	}

	last, _ := errors[20].(map[string]any)
	if last["rule"] != "more" || last["message"] != "and 31 more" { // 50 numbers, and two of them are equal
		t.Errorf("the last entry is %v", last)
	}
}

// TestProvisionerLimitsApply checks that the broker refuses orders that exceed a limit of the Provisioner, because such an order
// would fail after it was accepted.
func TestProvisionerLimitsApply(t *testing.T) {
	b := newFixture(t)

	b.want("200 administrators", b.put("new", order(with("parameters", map[string]any{"administrators": json.RawMessage(distinct(200))}))), 400)

	for reason, context := range map[string]map[string]any{
		"a user ID of 300 characters, who would become the administrator": {"user_id": strings.Repeat("u", 300)},
		"a user ID with a control character":                              {"user_id": "a\u0000b"},
		"a context of 100 kB":                                             {"x": strings.Repeat("u", 100_000)},
	} {
		b.want(reason, b.put("new", order(with("context", context))), 400)
	}

	b.want("a long instance name is cut", b.put("new", order(with("context", map[string]any{"instance_name": strings.Repeat("n", 60_000)}))), 202)
}
