package osb

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/environment-broker/environment-broker/test/harness"
)

func rowResponsesAreJSON(r *row) {
	id := r.createInstance()

	for _, call := range append(endpoints(id, "b"), harness.Call{Method: http.MethodGet, Path: "/v2/nothing"},
		harness.Call{Method: http.MethodPost, Path: "/v2/catalog"}, harness.Call{Method: http.MethodGet, Path: "/v2/catalog", Header: without("Authorization")}) {
		if got := r.do(call); got.Raw == "" || got.Header.Get("Content-Type") != "application/json" {
			r.Errorf("%s %s: %d of type %q", call.Method, call.Path, got.Status, got.Header.Get("Content-Type"))
		}
	}
}

// malformed returns bodies that do not consist of exactly one JSON object.
func malformed() []string {
	return []string{"{bad", "", "[]", `"x"`, "5", "null", "{} {}", `{"service_id":}`, "\x00", "{\"a\":\xff}", "true"}
}

func rowMalformedBodyIs400(r *row) {
	id := r.createInstance()

	r.wantUnchanged([]string{harness.InstancePath(id), harness.BindingPath(id, "b")}, func() {
		for _, path := range []string{harness.InstancePath(id), harness.BindingPath(id, "b")} {
			for _, method := range []string{http.MethodPut, http.MethodPatch} {
				if method == http.MethodPatch && path != harness.InstancePath(id) {
					continue
				}

				for _, bad := range malformed() {
					r.want(method+" "+path+" "+bad, r.do(harness.Call{Method: method, Path: path + harness.Incomplete, Body: bad}), http.StatusBadRequest)
				}

				for _, media := range []string{"text/plain", "application/xml", "/", "multipart/form-data; boundary=x"} {
					r.want(method+" of type "+media, r.do(harness.Call{
						Method: method, Path: path + harness.Incomplete, Body: r.order(), Header: header("Content-Type", media),
					}), http.StatusBadRequest)
				}
			}
		}
	})
}

func rowContentTypeMayBeMissing(r *row) {
	for _, media := range []http.Header{
		without("Content-Type"), header("Content-Type", "application/x-www-form-urlencoded"),
		header("Content-Type", "application/json; charset=utf-8"), header("Content-Type", "Application/JSON"),
	} {
		id := r.newID()
		operation := r.want("an order", r.do(harness.Call{
			Method: http.MethodPut, Path: harness.InstancePath(id) + harness.Incomplete, Body: r.order(), Header: media,
		}), http.StatusAccepted).Text("operation")
		r.wantSucceeded(harness.InstancePath(id), operation)
		r.want("a bind", r.do(harness.Call{Method: http.MethodPut, Path: harness.BindingPath(id, "b"), Body: r.binding(), Header: media}), http.StatusCreated)
	}
}

// rowUsabilityHintsOnlyWhereDefined makes provision, fetch, bind and unbind requests fail. Their responses must not contain
// usability hints.
func rowUsabilityHintsOnlyWhereDefined(r *row) {
	lift := r.refuse(callOrder)
	defer lift()

	id := r.newID()
	operation := r.want("an order", r.put(id, r.order()), http.StatusAccepted).Text("operation")

	for _, got := range []harness.Reply{
		r.wantFailed(harness.InstancePath(id), operation), r.get(harness.InstancePath(id)), r.put(id, r.order(fields{"plan_id": harness.PlanGCP})),
		r.bind(id, "b", r.binding()), r.get(harness.BindingPath(id, "b")), r.unbind(id, "b"),
	} {
		for _, hint := range []string{"instance_usable", "update_repeatable"} {
			if _, given := got.Body[hint]; given {
				r.Errorf("the response contains %s: %d %s", hint, got.Status, got.Raw)
			}
		}
	}
}

// rowResponsesArePromptDuringOutage calls every endpoint while all calls to the Provisioner hang. platform.do fails the test if
// a response takes too long.
func rowResponsesArePromptDuringOutage(r *row) {
	for _, call := range []string{callOrder, callUpgrade, callRemoval, callKubeconfig} {
		defer r.hold(call)()
	}

	id := r.newID()

	for _, call := range endpoints(id, "b") {
		switch call.Method {
		case http.MethodPut, http.MethodPatch:
			call.Body = r.order()
		}

		r.do(call)
	}
}

func rowIDsArePercentDecoded(r *row) {
	same := map[string]string{ // two spellings of each ID
		"a-b": "a%2Db", "a.b": "a%2eb", "a_b~": "a%5Fb%7E", "x": "%78", "with%20blank": "with%20blank", "a%2Fb": "a%2fb",
		"%C3%BC": "ü", strings.Repeat("i", 255): strings.Repeat("%69", 255), "..%2Fup": "%2e%2e%2Fup",
	}

	for first, other := range same {
		operation := r.want("an ID can contain any characters: "+first, r.put(first, r.order()), http.StatusAccepted).Text("operation")
		r.want("percent encoding makes no difference: "+other, r.poll(harness.InstancePath(other), operation), http.StatusOK)
		r.wantSucceeded(harness.InstancePath(other), operation)
		r.want("the instance can be fetched", r.get(harness.InstancePath(other)), http.StatusOK)
	}

	for _, bad := range []string{"a%00b", "a%0Ab", "%ff", strings.Repeat("i", 256)} {
		for _, call := range endpoints(bad, "b") {
			if call.Path != "/v2/catalog" {
				call.Body = r.order()
				r.want("an invalid ID: "+bad, r.do(call), http.StatusBadRequest)
			}
		}
	}
}

func rowOriginatingIdentityMayBeInvalid(r *row) {
	encoded := func(text string) string { return "x " + base64.StdEncoding.EncodeToString([]byte(text)) }

	for _, sent := range []string{
		"cloudfoundry eyJ1c2VyX2lkIjoiYmVydCJ9", encoded(`{"username":"k","uid":"u","groups":["a"],"extra":{}}`), "", " ", "x", "x y",
		"x %%%", encoded("{"), encoded("[]"), encoded("null"), encoded(`{"user_id":5}`), strings.Repeat("x", 4000),
	} {
		id := r.newID()
		r.want("an invalid identity is ignored: "+sent, r.do(harness.Call{
			Method: http.MethodPut, Path: harness.InstancePath(id) + harness.Incomplete, Body: r.order(fields{"context": fields{}}),
			Header: header(originatorHeader, sent),
		}), http.StatusAccepted)
	}
}

func rowPlatformsMayDiffer(r *row) {
	r.wantOneOf("the header names another platform than the context", r.do(harness.Call{
		Method: http.MethodPut, Path: harness.InstancePath(r.newID()) + harness.Incomplete, Body: r.order(),
		Header: header(originatorHeader, "kubernetes e30="),
	}), http.StatusAccepted, http.StatusBadRequest)
}

func rowDescriptionsAreShort(r *row) {
	long := strings.Repeat("very ", 200)

	for _, body := range []string{
		r.order(fields{"plan_id": long}), r.order(fields{"parameters": fields{long: 1}}), r.order(fields{"parameters": fields{"region": long}}),
	} {
		got := r.want("a long text in the request", r.put(r.newID(), body), http.StatusBadRequest)
		if len([]rune(got.Text("description"))) > 255 {
			r.Errorf("the description exceeds 255 characters: %s", got.Raw)
		}
	}
}
