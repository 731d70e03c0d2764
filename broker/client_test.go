package broker_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// call is an OSB request. Its headers replace the default headers; an empty value removes a header.
type call struct {
	method, path, body string
	header             map[string]string
	user, password     string
}

type reply struct {
	Status int
	Header http.Header
	Body   map[string]any
	Raw    string
}

func (r reply) text(field string) string {
	text, _ := r.Body[field].(string)

	return text
}

// do sends the request and returns the response, after checkAnswer has checked it.
func (b *fixture) do(call call) reply {
	b.Helper()

	got := b.send(call)
	b.checkAnswer(call, got)

	return got
}

func (b *fixture) send(call call) reply {
	b.Helper()

	request, err := http.NewRequestWithContext(b.Context(), call.method, b.address+call.path, strings.NewReader(call.body))
	if err != nil {
		b.Fatal(err)
	}

	if call.body == "" {
		request.Body = http.NoBody
	}

	headers := map[string]string{
		"X-Broker-API-Version": "2.17", "X-Broker-API-Request-Identity": identity, "Content-Type": "application/json",
	}
	maps.Copy(headers, call.header)

	for name, value := range headers {
		if value != "" {
			request.Header.Set(name, value)
		}
	}

	switch call.user {
	case "":
		request.SetBasicAuth(user, password)
	case "nobody":
	default:
		request.SetBasicAuth(call.user, call.password)
	}

	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		b.Fatalf("%s %s: %v", call.method, call.path, err)
	}
	defer response.Body.Close()

	content, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatalf("%s %s: %v", call.method, call.path, err)
	}

	got := reply{Status: response.StatusCode, Header: response.Header, Raw: string(content)}
	if len(content) > 0 {
		if err := json.Unmarshal(content, &got.Body); err != nil {
			b.Fatalf("%s %s: the body is not a JSON object: %v\n%s", call.method, call.path, err, content)
		}
	}

	return got
}

// checkAnswer checks the rules of the protocol that apply to every response.
func (b *fixture) checkAnswer(call call, got reply) {
	b.Helper()

	place := call.method + " " + call.path

	if sent, given := call.header["X-Broker-API-Request-Identity"]; !given && got.Header.Get("X-Broker-API-Request-Identity") != identity {
		b.Errorf("A7: %s: the request identity is not echoed", place)
	} else if given && got.Header.Get("X-Broker-API-Request-Identity") != sent {
		b.Errorf("A7: %s: the request identity is %q, want %q", place, got.Header.Get("X-Broker-API-Request-Identity"), sent)
	}

	if got.Raw != "" && got.Header.Get("Content-Type") != "application/json" {
		b.Errorf("A17: %s: the content type is %q", place, got.Header.Get("Content-Type"))
	}

	if code, given := got.Body["error"]; given && !regexp.MustCompile(`^([A-Z][a-z]+)+$`).MatchString(got.text("error")) {
		b.Errorf("A12: %s: the code is %v", place, code)
	}

	if description, given := got.Body["description"]; given || got.Status >= 400 {
		if text := got.text("description"); text == "" || utf8.RuneCountInString(text) > 255 {
			b.Errorf("A13, A26: %s: the description is %v", place, description)
		}
	}

	known := []string{
		"services", "operation", "dashboard_url", "metadata", "state", "description", "error",
		"service_id", "plan_id", "parameters", "maintenance_info", "credentials", "endpoints",
	}
	if call.method == http.MethodPatch && got.Status >= 400 || strings.Contains(call.path, "/last_operation") && got.text("state") == "failed" {
		known = append(known, "instance_usable", "update_repeatable")
	}

	if strings.HasSuffix(call.path, "/validate") { // the validation is an extension of the protocol
		known = append(known, "valid", "errors", "resolved", "quota")
	}

	for field := range got.Body {
		if !slices.Contains(known, field) {
			b.Errorf("A10, A20: %s: the protocol does not define the field %s", place, field)
		}
	}

	if !slices.Contains([]int{200, 201, 202, 304}, got.Status) && got.Status < 400 {
		b.Errorf("J16: %s: status %d", place, got.Status)
	}

	if got.Status >= 500 && !b.faulty {
		b.Errorf("J18: %s: status %d, although no fault was injected: %s", place, got.Status, got.Raw)
	}
}

// want fails the test unless the response has the status and, if one is given, the error code.
func (b *fixture) want(reason string, got reply, status int, code ...string) reply {
	b.Helper()

	if got.Status != status || len(code) > 0 && got.text("error") != code[0] {
		b.Fatalf("\n%s\nwant %d %v, got %d %s", reason, status, code, got.Status, got.Raw)
	}

	return got
}

// wantState fails the test unless the poll returns the state.
func (b *fixture) wantState(reason string, got reply, state string) {
	b.Helper()

	if b.want(reason, got, 200); got.text("state") != state {
		b.Fatalf("\n%s\nwant the state %s, got %s", reason, state, got.Raw)
	}
}

// bindOf returns the body of a bind request. It contains the JSON fields in more.
func bindOf(more string) string {
	return `{"service_id":"` + serviceID + `","plan_id":"` + planAWS + `"` + more + `}`
}

const role = `,"parameters":{"role":"view","expiration_seconds":1200}`

func bindingOf(id, binding string) string { return path(id) + "/service_bindings/" + binding }

func (b *fixture) bind(binding, more string) reply {
	b.Helper()

	return b.do(call{method: "PUT", path: bindingOf(instanceID, binding), body: bindOf(more)})
}

func (b *fixture) bindLater(binding, more string) reply {
	b.Helper()

	return b.do(call{method: "PUT", path: bindingOf(instanceID, binding) + "?accepts_incomplete=true", body: bindOf(more)})
}

func (b *fixture) unbind(binding, query string) reply {
	b.Helper()

	return b.do(call{method: "DELETE", path: bindingOf(instanceID, binding) + "?" + ids[1:] + query})
}

func (b *fixture) getBinding(binding string) reply {
	b.Helper()

	return b.do(call{method: "GET", path: bindingOf(instanceID, binding)})
}

func (b *fixture) pollBinding(binding, operation string) reply {
	b.Helper()

	return b.do(call{method: "GET", path: bindingOf(instanceID, binding) + "/last_operation?operation=" + operation})
}

// order returns the body of a valid provision request. Each change replaces a field, or removes it if the value is
// nil.
func order(changes ...map[string]any) string {
	fields := map[string]any{
		"service_id": serviceID, "plan_id": planAWS, "organization_guid": "org-1", "space_guid": "space-1",
		"context":    map[string]any{"platform": "cloudfoundry", "instance_name": "mine"},
		"parameters": map[string]any{"region": "eu-west-1", "autoScalerMin": 4},
	}

	for _, change := range changes {
		for name, value := range change {
			fields[name] = value
			if value == nil {
				delete(fields, name)
			}
		}
	}

	encoded, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}

	return string(encoded)
}

// with returns a change for order: one field with its new value.
func with(name string, value any) map[string]any { return map[string]any{name: value} }

func path(id string) string { return "/v2/service_instances/" + id }

func (b *fixture) put(id, body string) reply {
	b.Helper()

	return b.do(call{method: "PUT", path: path(id) + "?accepts_incomplete=true", body: body})
}

func (b *fixture) get(id string) reply {
	b.Helper()

	return b.do(call{method: "GET", path: path(id)})
}

func (b *fixture) remove(id string) reply {
	b.Helper()

	return b.do(call{method: "DELETE", path: path(id) + "?accepts_incomplete=true" + ids})
}

func (b *fixture) poll(id, operation string) reply {
	b.Helper()

	query := ""
	if operation != "" {
		query = "?operation=" + operation
	}

	return b.do(call{method: "GET", path: path(id) + "/last_operation" + query})
}

// patch sends an update with the given fields. It adds service_id if they lack it.
func (b *fixture) patch(id string, fields map[string]any) reply {
	b.Helper()

	return b.do(call{method: "PATCH", path: path(id) + "?accepts_incomplete=true", body: patching(fields)})
}

func patching(fields map[string]any) string {
	sent := map[string]any{"service_id": serviceID}
	maps.Copy(sent, fields)

	encoded, err := json.Marshal(sent)
	if err != nil {
		panic(err)
	}

	return string(encoded)
}
