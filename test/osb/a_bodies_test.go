package osb

import (
	"encoding/base64"
	"net/http"
	"strings"
)

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
