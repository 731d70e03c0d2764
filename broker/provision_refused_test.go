package broker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestProvisionIsRejected(t *testing.T) {
	long := strings.Repeat("x", 300)

	cases := map[string]struct {
		reason string
		body   string
		want   string
	}{
		"D2Missing":          {"service_id is required", order(with("service_id", nil)), "service_id is missing."},
		"D2Empty":            {"service_id must not be empty", order(with("service_id", "")), "service_id is missing."},
		"D2Null":             {"null equals an absent value", strings.Replace(order(), `"`+serviceID+`"`, "null", 1), "service_id is missing."},
		"D2Number":           {"service_id must be a string", order(with("service_id", 5)), "service_id must be a string."},
		"D2Unknown":          {"service_id must be in the catalog", order(with("service_id", "x")), `service_id "x" is not in the catalog`},
		"D3Missing":          {"plan_id is required", order(with("plan_id", nil)), "plan_id is missing."},
		"D3Empty":            {"plan_id must not be empty", order(with("plan_id", "")), "plan_id is missing."},
		"D3Unknown":          {"plan_id must belong to the service", order(with("plan_id", serviceID)), "is not a plan of service kymaruntime"},
		"D3Long":             {"a long ID is not quoted in full", order(with("plan_id", long)), "plan_id"},
		"D4NoOrganization":   {"organization_guid is required", order(with("organization_guid", nil)), "organization_guid is missing."},
		"D4EmptySpace":       {"space_guid must not be empty", order(with("space_guid", "")), "space_guid is missing."},
		"D4Number":           {"organization_guid must be a string", order(with("organization_guid", 1)), "organization_guid must be a string."},
		"D5ParametersArray":  {"parameters must be an object", order(with("parameters", []int{1})), "parameters must be an object."},
		"D5ParametersText":   {"parameters must be an object", order(with("parameters", "x")), "parameters must be an object."},
		"D5ContextText":      {"context must be an object", order(with("context", "x")), "context must be an object."},
		"D5ContextField":     {"fields of the context must be strings", order(with("context", map[string]any{"globalaccount_id": 5})), "context.globalaccount_id must be a string."},
		"D5ContextAlone":     {"the invalid field is reported, not the missing one", order(with("organization_guid", nil), with("context", map[string]any{"globalaccount_id": 5})), "context.globalaccount_id must be a string."},
		"D5Maintenance":      {"maintenance_info must be an object", order(with("maintenance_info", 5)), "maintenance_info must be an object."},
		"D5MaintenanceField": {"its version must be a string", order(with("maintenance_info", map[string]any{"version": 1})), "maintenance_info.version must be a string."},
		"D6Unknown":          {"unknown parameters are rejected", order(with("parameters", map[string]any{"targetSecret": "x"})), "targetSecret: the plan has no such parameter"},
		"D6Type":             {"the schema's types apply", order(with("parameters", map[string]any{"autoScalerMin": "4"})), "autoScalerMin: must be an integer, but is a string"},
		"D6Range":            {"the schema's bounds apply", order(with("parameters", map[string]any{"autoScalerMin": 1})), "autoScalerMin: must be at least 3, but is 1"},
		"D6Together":         {"related parameters are checked together", order(with("parameters", map[string]any{"autoScalerMax": 3, "autoScalerMin": 9})), "autoScalerMin: 9 is greater than autoScalerMax 3"},
		"ControlCharacter":   {"accounts must be printable", order(with("organization_guid", "a\x00b")), "control characters"},
	}

	b := newFixture(t)

	for name, test := range cases {
		got := b.want(test.reason, b.put(name, test.body), 400)
		if !strings.Contains(got.text("description"), test.want) {
			b.Errorf("%s\n%s\nwant a description with %q, got %q", name, test.reason, test.want, got.text("description"))
		}

		b.want("A15: no operation was stored: "+name, b.poll(name, ""), 404)
		b.want("A15: the ID is free: "+name, b.put(name, order()), 202)
	}
}

func TestProvisionIsAsynchronous(t *testing.T) {
	for _, query := range []string{"", "?accepts_incomplete=false", "?accepts_incomplete=", "?accepts_incomplete=TRUE"} {
		b := newFixture(t)

		got := b.want("synchronous creation is not supported",
			b.do(call{method: "PUT", path: path(instanceID) + query, body: order()}), 422, "AsyncRequired")

		want := "This service plan requires client support for asynchronous service operations."
		if got.text("description") != want {
			b.Errorf("clients recognize the error by its description: want %q, got %q", want, got.text("description"))
		}

		b.want("A15: nothing was stored", b.poll(instanceID, ""), 404)
	}
}

func TestMaintenanceInfo(t *testing.T) {
	cases := map[string]struct {
		reason string
		info   any
		status int
		code   string
	}{
		"Right":   {reason: "the catalog's version", info: map[string]any{"version": "1.0.0", "description": "x"}, status: 202},
		"Wrong":   {reason: "another version", info: map[string]any{"version": "0.0.0"}, status: 422, code: "MaintenanceInfoConflict"},
		"Empty":   {reason: "M5: an object without a version", info: map[string]any{}, status: 202},
		"Without": {reason: "unknown fields are ignored", info: map[string]any{"description": "x"}, status: 202},
		"Null":    {reason: "null equals an absent value", info: json.RawMessage("null"), status: 202},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.want(test.reason, b.put(instanceID, order(with("maintenance_info", test.info))), test.status, test.code)
		})
	}
}

func TestEqualNumbersInDifferentNotation(t *testing.T) {
	for _, number := range []string{"4", "4.0", "4e0"} {
		b := newFixture(t)
		status := 202

		if number != "4" {
			status = 400 // JSON schema draft 4 allows no fraction and no exponent in an integer
		}

		body := strings.Replace(order(), `"autoScalerMin":4`, fmt.Sprintf(`"autoScalerMin":%s`, number), 1)
		b.want("numbers of nodes are integers", b.put(instanceID, body), status)
	}
}
