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
		{method: http.MethodGet, path: "/v2/nothing"},
		{method: http.MethodPost, path: "/v2/catalog"},
		{method: http.MethodPut, path: instancePath("x"), body: strings.Repeat(" ", 2<<20)},
		{method: http.MethodGet, path: "/"},
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
