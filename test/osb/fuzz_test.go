package osb

import (
	"encoding/base64"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/environment-broker/environment-broker/test/harness"
)

// methodOf maps a fuzzed number to an HTTP method.
func methodOf(choice uint8) string {
	methods := []string{http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodGet}

	return methods[int(choice)%len(methods)]
}

// FuzzBody sends requests with arbitrary bodies.
func FuzzBody(f *testing.F) {
	target := newTarget(f)
	seed := platform{tenant: "o"}

	for _, body := range append(malformed(),
		seed.order(), seed.patch(), seed.binding(), seed.order(fields{"maintenance_info": fields{"version": "1.0.0"}}),
		seed.order(fields{"context": fields{"globalaccount_id": "a", "user_id": "u", "active": false, "sm_operator_credentials": fields{}}}),
		seed.order(fields{"parameters": fields{"zones": []string{"a"}, "administrators": []string{"x"}, "name": "n", "machineType": "m6i.large"}}),
		seed.binding(fields{"parameters": fields{"expiration_seconds": 600}, "predecessor_binding_id": "b", "bind_resource": fields{"app_guid": ""}}),
		seed.patch(fields{"plan_id": harness.PlanGCP, "previous_values": fields{"plan_id": harness.PlanAWS}, "context": fields{"active": false}}),
		`{"service_id":"`+strings.Repeat("[", 2000)+`"}`, strings.Repeat(`{"a":`, 10_000), `{"parameters":{"autoScalerMax":1e400}}`,
		`{"service_id":"\ud800","plan_id":"\u0000"}`, `{"a":1,"a":2}`) {
		for choice := range uint8(4) {
			target.add(f, choice, true, []byte(body))
			target.add(f, choice, false, []byte(body))
		}
	}

	f.Fuzz(func(t *testing.T, choice uint8, ofInstance bool, body []byte) {
		target.inputs.Add(1)

		path := harness.InstancePath(target.instance)
		if !ofInstance {
			path = harness.BindingPath(target.instance, "b")
		}

		query := harness.Incomplete
		if method := methodOf(choice); method == http.MethodDelete {
			query += "&" + ids
		} else if method == http.MethodPut && ofInstance && choice >= 128 {
			path = harness.InstancePath("new")
		}

		if methodOf(choice) == http.MethodDelete && ofInstance {
			return // would delete the instance that other inputs need
		}

		target.check(t, harness.Call{Method: methodOf(choice), Path: path + query, Body: string(body)})
	})

	target.wantResponses(f, 150)
}

// FuzzID sends requests with arbitrary IDs, regions and queries.
func FuzzID(f *testing.F) {
	target := newTarget(f)
	order := platform{tenant: "o"}.order()

	for _, id := range []string{
		"a", "", ".", "..", "/", "a/b", "%", "%2F", "ü", "\x00", "\xff", " ", "?", "#", strings.Repeat("i", 256), "known", "a;b", "a\r\nb",
		"';--", "last_operation", "\u202e", "known/service_bindings/b", "known/last_operation",
	} {
		for choice := range uint8(4) {
			target.add(f, choice, id, "operation=x", false)
			target.add(f, choice, id, ids+"&accepts_incomplete=true", true)
			target.add(f, choice, id, "%zz;&==&accepts_incomplete=true&service_id", false)
		}
	}

	f.Fuzz(func(t *testing.T, choice uint8, id, query string, raw bool) {
		target.inputs.Add(1)

		if methodOf(choice) == http.MethodDelete && (id == target.instance || raw) {
			return // would delete the instance that other inputs need
		}

		if strings.ContainsFunc(query, unsendable) || raw && strings.ContainsFunc(id, unsendable) {
			return
		}

		sent := url.PathEscape(id)
		if raw {
			sent = strings.ReplaceAll(id, "#", "%23") // a fragment is never sent
		}

		for _, path := range []string{
			harness.InstancePath(sent), harness.InstancePath(sent) + "/last_operation", harness.BindingPath(target.instance, sent),
			harness.BindingPath(sent, "b") + "/last_operation", "/oauth/" + sent + harness.InstancePath(target.instance),
		} {
			if methodOf(choice) == http.MethodDelete && strings.Contains(path, target.instance) {
				continue
			}

			target.check(t, harness.Call{Method: methodOf(choice), Path: path + "?" + query, Body: order})
		}
	})

	target.wantResponses(f, 900)
}

// unsendable reports whether HTTP forbids the character in a request line.
func unsendable(char rune) bool { return char <= ' ' || char >= 0x7f }

// FuzzHeader sends requests with arbitrary header values.
func FuzzHeader(f *testing.F) {
	target := newTarget(f)
	order := platform{tenant: "o"}.order()

	for _, value := range []string{
		"", "2.17", "2.", "99999999999999999999.1", "-1.0", "２.１７", "x", "kubernetes " + base64.StdEncoding.EncodeToString([]byte(`{"username":{}}`)),
		"cloudfoundry eyJ1c2VyX2lkIjoiYmVydCJ9", "Basic x", "Bearer a.b.c", "Basic " + base64.StdEncoding.EncodeToString([]byte("tester:secret")),
		"application/json; charset=\"", "text/plain", strings.Repeat("x", 5000), "*", `W/"x", "y"`, "Mon, 02 Jan 2006 15:04:05 GMT",
	} {
		for which := range uint8(7) {
			target.add(f, which, uint8(0), value)
			target.add(f, which, uint8(3), value)
		}
	}

	f.Fuzz(func(t *testing.T, which, choice uint8, value string) {
		target.inputs.Add(1)

		names := []string{
			harness.VersionHeader, originatorHeader, identityHeader, "Content-Type", "Authorization", "If-None-Match", "If-Modified-Since",
		}
		name := names[int(which)%len(names)]

		if strings.ContainsFunc(value, func(char rune) bool { return char < ' ' || char == 0x7f }) || strings.TrimSpace(value) != value {
			return // HTTP clients reject or trim this value
		}

		path := harness.InstancePath(target.instance) + harness.Incomplete
		if method := methodOf(choice); method == http.MethodDelete {
			path = harness.InstancePath("nobody") + harness.Incomplete + "&" + ids
		} else if method == http.MethodGet {
			path = "/v2/catalog"
		}

		target.check(t, harness.Call{Method: methodOf(choice), Path: path, Body: order, Header: header(name, value)})
	})

	target.wantResponses(f, 240)
}

// seedCount is the number of seeds of FuzzDescribed. Each one draws one call.
const seedCount = 48

// FuzzDescribed sends requests drawn from the OpenAPI description. Most of their values are valid.
func FuzzDescribed(f *testing.F) {
	target := newTarget(f)

	document, err := specification()
	if err != nil {
		f.Fatal(err)
	}

	// Drawing a call consumes a few hundred values of eight bytes each. rapid skips an input that is too short.
	for seed := range byte(seedCount) {
		input := make([]byte, 16<<10)
		if _, err := rand.NewChaCha8([32]byte{seed}).Read(input); err != nil {
			f.Fatal(err)
		}

		target.add(f, input)
	}

	draw := describedCalls(document, target.instance)

	f.Fuzz(func(t *testing.T, input []byte) {
		target.inputs.Add(1)

		rapid.MakeFuzz(func(r *rapid.T) { target.check(t, draw.Draw(r, "call")) })(t, input)
	})

	target.wantResponses(f, 45)
}
