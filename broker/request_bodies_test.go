package broker_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestA9UnknownFieldsAreIgnored(t *testing.T) {
	b := newFixture(t)

	b.want("PUT", b.put(instanceID, order(
		with("unknown", map[string]any{"a": 1}), with("SERVICE_ID", 5), with("previous_values", "x"),
		with("maintenance_info", map[string]any{"version": "1.0.0", "unknown": []int{1}}),
		with("context", map[string]any{"platform": "x", "unknown": map[string]any{}, "organization_annotations": map[string]any{"a/b": "c"}}),
	)), 202)
	b.want("PATCH", b.do(call{
		method: "PATCH", path: path(instanceID) + "?accepts_incomplete=true",
		body: `{"service_id":"` + serviceID + `","previous_values":{"x":1},"unknown":null}`,
	}), 422)
}

func TestA18A19Bodies(t *testing.T) {
	bodies := map[string]string{
		"broken": "{bad", "empty": "", "array": "[]", "text": `"x"`, "number": "5", "null": "null",
		"rubbish behind": order() + "x", "two objects": order() + order(), "invalid UTF-8 outside of strings": "\xff{}",
	}
	targets := map[string]string{"PUT": path("new"), "PATCH": path(instanceID)}

	b := newFixture(t)
	b.provisioned(instanceID)

	for name, body := range bodies {
		for method, target := range targets {
			b.want("A18: "+method+" "+name, b.do(call{method: method, path: target + "?accepts_incomplete=true", body: body}), 400)
		}

		b.want("A18: PUT B "+name, b.do(call{method: "PUT", path: path(instanceID) + "/service_bindings/b", body: body}), 400)
	}

	kinds := map[string]int{
		"": 202, "application/json": 202, "application/json; charset=utf-8": 202, "APPLICATION/JSON": 202,
		"application/x-www-form-urlencoded": 202, // curl's default
		"text/plain":                        400, "application/xml": 400, "nonsense/": 400,
	}
	for kind, status := range kinds {
		id := fmt.Sprintf("kind-%x", kind)
		b.want("A18, A19: "+kind, b.do(call{
			method: "PUT", path: path(id) + "?accepts_incomplete=true", body: order(), header: map[string]string{"Content-Type": kind},
		}), status)
	}
}

func TestLimitOfBodies(t *testing.T) {
	b := newFixture(t)
	filled := strings.Replace(order(), "{", `{"filler":"`+strings.Repeat("x", 1<<20)+`",`, 1)

	b.want("a declared length is checked at once", b.put(instanceID, filled), 413)

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, b.address+path(instanceID),
		struct{ *strings.Reader }{strings.NewReader(filled)}) // of undeclared length
	if err != nil {
		t.Fatal(err)
	}

	request.SetBasicAuth(user, password)
	request.Header.Set("X-Broker-API-Version", "2.17")

	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()

	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("an undeclared length: want 413, got %d", response.StatusCode)
	}

	b.want("a shorter body", b.put(instanceID, strings.Replace(filled, strings.Repeat("x", 1<<10), "", 1)), 202)
}
