package osb

import (
	"encoding/base64"
	"net/http"
	"strings"
)

func requestRows() map[string]func(*row) {
	return map[string]func(*row){
		"A1": a1, "A2": a2, "A3": a3, "A4": a4, "A5": a5, "A6": a6, "A7": a7, "A8": a8, "A9": a9, "A10": a10, "A11": a11,
		"A12": a12, "A13": a13, "A14": a14, "A15": a15, "A16": a16, "A17": a17, "A18": a18, "A19": a19, "A20": a20, "A21": a21,
		"A22": a22, "A23": a23, "A24": a24, "A25": a25, "A26": a26,
	}
}

// endpoints are all routes with their methods, at an instance and a binding.
func endpoints(instance, binding string) []call {
	at, bound := instancePath(instance), bindingPath(instance, binding)

	return []call{
		{method: http.MethodGet, path: "/v2/catalog"},
		{method: http.MethodPut, path: at + incomplete},
		{method: http.MethodGet, path: at},
		{method: http.MethodPatch, path: at + incomplete},
		{method: http.MethodDelete, path: at + incomplete + "&" + ids},
		{method: http.MethodGet, path: at + "/last_operation"},
		{method: http.MethodPut, path: bound + incomplete},
		{method: http.MethodGet, path: bound},
		{method: http.MethodDelete, path: bound + incomplete + "&" + ids},
		{method: http.MethodGet, path: bound + "/last_operation"},
	}
}

// strangers are headers of requests that nobody may make.
func strangers() map[string]http.Header {
	basic := func(pair string) http.Header {
		return header("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	}

	return map[string]http.Header{
		"nobody": without("Authorization"), "wrong user": basic("somebody:" + password), "wrong password": basic(user + ":guess"),
		"empty password": basic(user + ":"), "unreadable": header("Authorization", "Basic %%%"),
		"unknown token": header("Authorization", "Bearer "+password), "unknown scheme": header("Authorization", "Magic "+password),
	}
}

func a1(r *row) {
	id := r.newID()

	for who, stranger := range strangers() {
		for _, call := range endpoints(id, "b") {
			call.header, call.body = stranger, r.order()
			if got := r.do(call); got.Status < http.StatusBadRequest || strings.Contains(got.Raw, "services") {
				r.Errorf("%s gets through: %s %s: %d", who, call.method, call.path, got.Status)
			}
		}
	}

	for _, call := range endpoints(id, "b") {
		call.header = header("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("watcher:"+password)))
		r.want("a user without the role for it", r.do(call), http.StatusForbidden)
	}
}

func a2(r *row) {
	for who, stranger := range strangers() {
		for _, prefix := range []string{"", "/oauth", "/oauth/cf-eu10"} {
			for _, call := range append(endpoints(r.newID(), "b"), call{method: http.MethodGet, path: "/v2/unknown"},
				call{method: http.MethodPost, path: "/v2/catalog"}) {
				call.path, call.header = prefix+call.path, stranger

				if got := r.want(who, r.do(call), http.StatusUnauthorized); got.Header.Get("WWW-Authenticate") == "" {
					r.Errorf("%s: %s %s does not tell how to log in", who, call.method, call.path)
				}
			}
		}
	}
}

func a3(r *row) {
	id := r.newID()

	for _, stranger := range strangers() {
		r.want("an order of a stranger", r.do(call{
			method: http.MethodPut, path: instancePath(id) + incomplete, body: r.order(), header: stranger,
		}), http.StatusUnauthorized)
	}

	r.want("nothing was made", r.get(instancePath(id)), http.StatusNotFound)
	r.want("nothing was begun", r.poll(instancePath(id), ""), http.StatusNotFound)
}

func a4(r *row) {
	for _, missing := range []http.Header{without(versionHeader), header(versionHeader, "")} {
		for _, call := range endpoints(r.newID(), "b") {
			call.header = missing

			got := r.want("a request without a version", r.do(call), http.StatusPreconditionFailed)
			if !strings.Contains(got.text("description"), versionHeader) {
				r.Errorf("the header is not named: %s", got.Raw)
			}
		}
	}
}

func a5(r *row) {
	for _, version := range []string{"1.0", "3.0", "abc", "2", "2.", "2.17abc", "2.17.1", "-2.17", "22.1", "2,17", " ", "2.17 ", "+2.17"} {
		got := r.do(call{method: http.MethodGet, path: "/v2/catalog", header: header(versionHeader, version)})
		if version == "2.17 " { // blanks around the value of a header are not part of it
			r.want(version, got, http.StatusOK)

			continue
		}

		r.want("a version that is not served: "+version, got, http.StatusPreconditionFailed)

		if !strings.Contains(got.text("description"), "2.17") {
			r.Errorf("no version that is served is named: %s", got.Raw)
		}
	}

	for _, version := range []string{"2.0", "2.1", "2.9", "2.13", "2.14", "2.16", "2.17", "2.99"} {
		r.want("a version that only adds, or lacks some: "+version,
			r.do(call{method: http.MethodGet, path: "/v2/catalog", header: header(versionHeader, version)}), http.StatusOK)
	}
}

// a6 looks at the one thing that depends on the minor version: a bind is asynchronous from 2.14 on.
func a6(r *row) {
	id := r.ready()

	for _, old := range []string{"2.9", "2.13"} {
		r.want("2.9 is older than 2.14: "+old, r.do(call{
			method: http.MethodPut, path: bindingPath(id, "b"+old) + incomplete, body: r.binding(), header: header(versionHeader, old),
		}), http.StatusCreated)
	}

	for _, recent := range []string{"2.14", "2.17", "2.100"} {
		r.want("asynchronous binds are known: "+recent, r.do(call{
			method: http.MethodPut, path: bindingPath(id, "b"+recent) + incomplete, body: r.binding(),
			header: header(versionHeader, recent),
		}), http.StatusAccepted)
	}
}

// a7 calls what no endpoint answers. All other answers are looked at whatever they are for.
func a7(r *row) {
	odd := []call{
		{method: http.MethodGet, path: "/v2/nothing"}, {method: http.MethodPost, path: "/v2/catalog"},
		{method: http.MethodPut, path: instancePath("x"), body: strings.Repeat(" ", 2<<20)}, {method: http.MethodGet, path: "/"},
		{method: http.MethodGet, path: "/v2/catalog", header: without("Authorization")},
		{method: http.MethodGet, path: "/v2/catalog", header: without(versionHeader)},
	}

	for _, call := range append(odd, endpoints(r.newID(), "b")...) {
		if got := r.do(call); got.Header.Get(identityHeader) != identity {
			r.Errorf("%s %s: %d without the request identity", call.method, call.path, got.Status)
		}
	}

	got := r.do(call{method: http.MethodGet, path: "/v2/catalog", header: without(identityHeader)})
	if sent := got.Header.Values(identityHeader); len(sent) > 0 {
		r.Errorf("an identity that was not sent is answered: %q", sent)
	}
}

func a8(r *row) {
	const own = "0b1c2d3e-8888-4000-8000-00000000a008"

	r.want("an order", r.do(call{
		method: http.MethodPut, path: instancePath(r.newID()) + incomplete, body: r.order(), header: header(identityHeader, own),
	}), http.StatusAccepted)

	r.until("the log line", func() bool {
		for _, entry := range r.log.AllEntries() {
			if entry.Data["requestID"] == own {
				return true
			}
		}

		return false
	})
}

func a9(r *row) {
	extra := fields{"x": 1, "another_thing": fields{"a": []int{1}}, "null": nil}
	info := fields{"version": maintenanceVersion(r, planAWS), "y": 1, "description": "z"}
	id := r.ready(extra, fields{
		"context": fields{"platform": "cloudfoundry", "x": fields{}}, "maintenance_info": info, "previous_values": extra,
		"bind_resource": extra,
	})
	r.want("a bind", r.bindNow(id, "b", r.binding(extra, fields{
		"context": extra, "bind_resource": fields{"app_guid": "a", "x": 1},
	})), http.StatusCreated)
	r.updated(id, extra, fields{"context": fields{"platform": "cloudfoundry", "x": 1}, "maintenance_info": info, "previous_values": extra})
}

// a10 visits the answers of a whole life: every one of them is held against closed schemas.
func a10(r *row) {
	id := r.ready()

	for _, call := range endpoints(id, "b") {
		call.body = r.order()
		r.do(call)
	}
}

func a11(r *row) {
	id := r.ready()

	r.want("no such path", r.get("/v2/nothing"), http.StatusNotFound)
	r.want("no such method", r.do(call{method: http.MethodPost, path: instancePath(id)}), http.StatusMethodNotAllowed)
	r.want("too large", r.put(r.newID(), strings.Repeat(" ", 2<<20)), http.StatusRequestEntityTooLarge)
	r.want("unreadable", r.put(r.newID(), "{"), http.StatusBadRequest)
	r.want("conflict", r.put(id, r.order(fields{"parameters": fields{}})), http.StatusConflict)
	r.want("unknown", r.get(instancePath(r.newID())), http.StatusNotFound)
	r.want("gone", r.remove(r.newID()), http.StatusGone)
}

// a12 and a13 visit every error that needs no back end; codes and descriptions of all answers are checked.
func a12(r *row) {
	for _, refused := range refusals(r) {
		if code, given := refused.Body["error"]; given && code == "" {
			r.Errorf("the code is empty: %s", refused.Raw)
		}
	}
}

func a13(r *row) {
	for _, refused := range refusals(r) {
		if refused.text("description") == "" {
			r.Errorf("the description is empty: %d %s", refused.Status, refused.Raw)
		}
	}
}

// refusals are answers to bad requests of all kinds.
func refusals(r *row) []reply {
	var all []reply

	for _, bad := range []string{"{", "[]", "", `{"service_id":5}`, `{"service_id":"x","plan_id":"y"}`} {
		for _, call := range endpoints(r.newID(), "b") {
			if call.body = bad; call.path == "/v2/catalog" {
				call.header = without(versionHeader)
			}

			got := r.do(call)
			if got.Status < http.StatusBadRequest {
				r.Fatalf("%s %s is no error: %d", call.method, call.path, got.Status)
			}

			all = append(all, got)
		}
	}

	return all
}

// a14 brings about the situations of the defined codes that this service knows; no binding of it needs an app.
func a14(r *row) {
	const (
		needsAsync = "This service plan requires client support for asynchronous service operations."
		concurrent = "The Service Broker does not support concurrent requests that mutate the same resource."
	)

	id := r.newID()

	got := r.want("AsyncRequired", r.do(call{method: http.MethodPut, path: instancePath(id), body: r.order()}),
		http.StatusUnprocessableEntity, "AsyncRequired")
	if got.text("description") != needsAsync {
		r.Errorf("clients compare the sentence letter by letter: %s", got.Raw)
	}

	r.want("MaintenanceInfoConflict", r.put(id, r.order(fields{"maintenance_info": fields{"version": "0.0.0"}})),
		http.StatusUnprocessableEntity, "MaintenanceInfoConflict")

	lift := r.hold(callOrder)
	defer lift()

	r.want("an order", r.put(id, r.order()), http.StatusAccepted)

	got = r.want("ConcurrencyError", r.update(id, r.patch()), http.StatusUnprocessableEntity, "ConcurrencyError")
	if got.text("description") != concurrent {
		r.Errorf("clients compare the sentence letter by letter: %s", got.Raw)
	}
}

// a15 sends what is refused to an instance and a binding that exist, and to ids that do not.
func a15(r *row) {
	id, unknown := r.ready(), r.newID()
	r.bound(id, "b")

	paths := []string{instancePath(id), bindingPath(id, "b"), instancePath(unknown), bindingPath(unknown, "b"), bindingPath(id, "c")}

	r.unchanged(paths, func() {
		for _, bad := range []string{
			"{", "[]", "null", r.order(fields{"service_id": "x"}), r.order(fields{"plan_id": "x"}),
			r.order(fields{"parameters": fields{"unknown": 1}}), r.order(fields{"maintenance_info": fields{"version": "0.0.0"}}),
			r.order(fields{"parameters": "x"}), r.order(fields{"context": 5}),
		} {
			for _, instance := range []string{id, unknown} {
				r.refused(call{method: http.MethodPut, path: instancePath(instance) + incomplete, body: bad})
				r.refused(call{method: http.MethodPatch, path: instancePath(instance) + incomplete, body: bad})
				r.refused(call{method: http.MethodPut, path: bindingPath(instance, "c") + incomplete, body: bad})
			}
		}

		for _, query := range []string{"", incomplete, incomplete + "&service_id=x&plan_id=y", "?" + ids + "&accepts_incomplete=false"} {
			for _, path := range []string{instancePath(id), instancePath(unknown), bindingPath(unknown, "b")} {
				r.refused(call{method: http.MethodDelete, path: path + query})
			}
		}
	})

	r.want("an id that was refused can still be used", r.put(unknown, r.order()), http.StatusAccepted)
}

// refused sends what has to be refused by 4xx.
func (r *row) refused(call call) {
	r.Helper()

	if got := r.do(call); got.Status < http.StatusBadRequest || got.Status >= http.StatusInternalServerError {
		r.Errorf("%s %s %s: want a 4xx, got %d %s", call.method, call.path, call.body, got.Status, got.Raw)
	}
}

func a17(r *row) {
	id := r.ready()

	for _, call := range append(endpoints(id, "b"), call{method: http.MethodGet, path: "/v2/nothing"},
		call{method: http.MethodPost, path: "/v2/catalog"}, call{method: http.MethodGet, path: "/v2/catalog", header: without("Authorization")}) {
		if got := r.do(call); got.Raw == "" || got.Header.Get("Content-Type") != "application/json" {
			r.Errorf("%s %s: %d of type %q", call.method, call.path, got.Status, got.Header.Get("Content-Type"))
		}
	}
}

// malformed are bodies that are not one JSON object.
func malformed() []string {
	return []string{"{bad", "", "[]", `"x"`, "5", "null", "{} {}", `{"service_id":}`, "\x00", "{\"a\":\xff}", "true"}
}

func a18(r *row) {
	id := r.ready()

	r.unchanged([]string{instancePath(id), bindingPath(id, "b")}, func() {
		for _, path := range []string{instancePath(id), bindingPath(id, "b")} {
			for _, method := range []string{http.MethodPut, http.MethodPatch} {
				if method == http.MethodPatch && path != instancePath(id) {
					continue
				}

				for _, bad := range malformed() {
					r.want(method+" "+path+" "+bad, r.do(call{method: method, path: path + incomplete, body: bad}), http.StatusBadRequest)
				}

				for _, media := range []string{"text/plain", "application/xml", "/", "multipart/form-data; boundary=x"} {
					r.want(method+" of type "+media, r.do(call{
						method: method, path: path + incomplete, body: r.order(), header: header("Content-Type", media),
					}), http.StatusBadRequest)
				}
			}
		}
	})
}

func a19(r *row) {
	for _, media := range []http.Header{
		without("Content-Type"), header("Content-Type", "application/x-www-form-urlencoded"),
		header("Content-Type", "application/json; charset=utf-8"), header("Content-Type", "Application/JSON"),
	} {
		id := r.newID()
		operation := r.want("an order", r.do(call{
			method: http.MethodPut, path: instancePath(id) + incomplete, body: r.order(), header: media,
		}), http.StatusAccepted).text("operation")
		r.succeeded(instancePath(id), operation)
		r.want("a bind", r.do(call{method: http.MethodPut, path: bindingPath(id, "b"), body: r.binding(), header: media}), http.StatusCreated)
	}
}

// a20 fails a provision, a bind and a fetch: none of them may give hints that are for updates. All answers are checked.
func a20(r *row) {
	lift := r.refuse(callOrder)
	defer lift()

	id := r.newID()
	operation := r.want("an order", r.put(id, r.order()), http.StatusAccepted).text("operation")

	for _, got := range []reply{
		r.failed(instancePath(id), operation), r.get(instancePath(id)), r.put(id, r.order(fields{"plan_id": planGCP})),
		r.bind(id, "b", r.binding()), r.get(bindingPath(id, "b")), r.unbind(id, "b"),
	} {
		for _, hint := range []string{"instance_usable", "update_repeatable"} {
			if _, given := got.Body[hint]; given {
				r.Errorf("%s is told: %d %s", hint, got.Status, got.Raw)
			}
		}
	}
}

// a21 has every call to the Provisioner hang. Each answer is timed.
func a21(r *row) {
	for _, call := range []string{callOrder, callUpgrade, callRemoval, callKubeconfig} {
		defer r.hold(call)()
	}

	id := r.newID()

	for _, call := range endpoints(id, "b") {
		switch call.method {
		case http.MethodPut, http.MethodPatch:
			call.body = r.order()
		}

		r.do(call)
	}
}

func a22(r *row) {
	same := map[string]string{ // as it is sent first, as it is sent then
		"a-b": "a%2Db", "a.b": "a%2eb", "a_b~": "a%5Fb%7E", "x": "%78", "with%20blank": "with%20blank", "a%2Fb": "a%2fb",
		"%C3%BC": "ü", strings.Repeat("i", 255): strings.Repeat("%69", 255), "..%2Fup": "%2e%2e%2Fup",
	}

	for first, then := range same {
		operation := r.want("an id of any characters: "+first, r.put(first, r.order()), http.StatusAccepted).text("operation")
		r.want("percent encoding makes no difference: "+then, r.poll(instancePath(then), operation), http.StatusOK)
		r.succeeded(instancePath(then), operation)
		r.want("it can be fetched", r.get(instancePath(then)), http.StatusOK)
	}

	for _, bad := range []string{"a%00b", "a%0Ab", "%ff", strings.Repeat("i", 256)} {
		for _, call := range endpoints(bad, "b") {
			if call.path != "/v2/catalog" {
				call.body = r.order()
				r.want("what cannot be stored or shown is no id: "+bad, r.do(call), http.StatusBadRequest)
			}
		}
	}
}

func a24(r *row) {
	encoded := func(text string) string { return "x " + base64.StdEncoding.EncodeToString([]byte(text)) }

	for _, sent := range []string{
		"cloudfoundry eyJ1c2VyX2lkIjoiYmVydCJ9", encoded(`{"username":"k","uid":"u","groups":["a"],"extra":{}}`), "", " ", "x", "x y",
		"x %%%", encoded("{"), encoded("[]"), encoded("null"), encoded(`{"user_id":5}`), strings.Repeat("x", 4000),
	} {
		id := r.newID()
		r.want("whatever it is, it is no reason to refuse: "+sent, r.do(call{
			method: http.MethodPut, path: instancePath(id) + incomplete, body: r.order(fields{"context": fields{}}),
			header: header(originatorHeader, sent),
		}), http.StatusAccepted)
	}
}

func a25(r *row) {
	r.wantOneOf("two platforms", r.do(call{
		method: http.MethodPut, path: instancePath(r.newID()) + incomplete, body: r.order(),
		header: header(originatorHeader, "kubernetes e30="),
	}), http.StatusAccepted, http.StatusBadRequest)
}

func a26(r *row) {
	long := strings.Repeat("very ", 200)

	for _, body := range []string{
		r.order(fields{"plan_id": long}), r.order(fields{"parameters": fields{long: 1}}), r.order(fields{"parameters": fields{"region": long}}),
	} {
		got := r.want("a long text in the request", r.put(r.newID(), body), http.StatusBadRequest)
		if len([]rune(got.text("description"))) > 255 {
			r.Errorf("the description is longer than platforms show: %s", got.Raw)
		}
	}
}
