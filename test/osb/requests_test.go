package osb

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/environment-broker/environment-broker/test/harness"
)

// endpoints returns a call for every method of every route of the protocol, with the IDs of an instance and a binding.
func endpoints(instance, binding string) []harness.Call {
	instancePath, bindingPath := harness.InstancePath(instance), harness.BindingPath(instance, binding)

	return []harness.Call{
		{Method: http.MethodGet, Path: "/v2/catalog"},
		{Method: http.MethodPut, Path: instancePath + harness.Incomplete},
		{Method: http.MethodGet, Path: instancePath},
		{Method: http.MethodPatch, Path: instancePath + harness.Incomplete},
		{Method: http.MethodDelete, Path: instancePath + harness.Incomplete + "&" + ids},
		{Method: http.MethodGet, Path: instancePath + "/last_operation"},
		{Method: http.MethodPut, Path: bindingPath + harness.Incomplete},
		{Method: http.MethodGet, Path: bindingPath},
		{Method: http.MethodDelete, Path: bindingPath + harness.Incomplete + "&" + ids},
		{Method: http.MethodGet, Path: bindingPath + "/last_operation"},
	}
}

// unauthenticated returns headers without valid credentials. Each key describes the error.
func unauthenticated() map[string]http.Header {
	basic := func(pair string) http.Header {
		return header("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	}

	return map[string]http.Header{
		"no credentials": without("Authorization"), "wrong user": basic("somebody:" + harness.Password), "wrong password": basic(harness.User + ":guess"),
		"empty password": basic(harness.User + ":"), "malformed header": header("Authorization", "Basic %%%"),
		"unknown token": header("Authorization", "Bearer "+harness.Password), "unknown scheme": header("Authorization", "Magic "+harness.Password),
	}
}

func rowAuthRequired(r *row) {
	id := r.newID()

	for reason, credentials := range unauthenticated() {
		for _, call := range endpoints(id, "b") {
			call.Header, call.Body = credentials, r.order()
			if got := r.do(call); got.Status < http.StatusBadRequest || strings.Contains(got.Raw, "services") {
				r.Errorf("%s: %s %s was accepted: %d", reason, call.Method, call.Path, got.Status)
			}
		}
	}

	for _, call := range endpoints(id, "b") {
		call.Header = header("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("watcher:"+harness.Password)))
		r.want("a user without the required role", r.do(call), http.StatusForbidden)
	}
}

func rowUnauthenticatedIs401(r *row) {
	for reason, credentials := range unauthenticated() {
		for _, prefix := range []string{"", "/oauth", "/oauth/cf-eu10"} {
			for _, call := range append(endpoints(r.newID(), "b"), harness.Call{Method: http.MethodGet, Path: "/v2/unknown"},
				harness.Call{Method: http.MethodPost, Path: "/v2/catalog"}) {
				call.Path, call.Header = prefix+call.Path, credentials

				if got := r.want(reason, r.do(call), http.StatusUnauthorized); got.Header.Get("WWW-Authenticate") == "" {
					r.Errorf("%s: %s %s has no WWW-Authenticate header", reason, call.Method, call.Path)
				}
			}
		}
	}
}

func rowUnauthenticatedHasNoEffect(r *row) {
	id := r.newID()

	for _, credentials := range unauthenticated() {
		r.want("an order without valid credentials", r.do(harness.Call{
			Method: http.MethodPut, Path: harness.InstancePath(id) + harness.Incomplete, Body: r.order(), Header: credentials,
		}), http.StatusUnauthorized)
	}

	r.want("nothing was created", r.get(harness.InstancePath(id)), http.StatusNotFound)
	r.want("no operation was started", r.poll(harness.InstancePath(id), ""), http.StatusNotFound)
}

func rowMissingVersionIsRejected(r *row) {
	for _, missing := range []http.Header{without(harness.VersionHeader), header(harness.VersionHeader, "")} {
		for _, call := range endpoints(r.newID(), "b") {
			call.Header = missing

			got := r.want("a request without a version", r.do(call), http.StatusPreconditionFailed)
			if !strings.Contains(got.Text("description"), harness.VersionHeader) {
				r.Errorf("the description does not name the header: %s", got.Raw)
			}
		}
	}
}

func rowUnsupportedVersionIsRejected(r *row) {
	for _, version := range []string{"1.0", "3.0", "abc", "2", "2.", "2.17abc", "2.17.1", "-2.17", "22.1", "2,17", " ", "2.17 ", "+2.17"} {
		got := r.do(harness.Call{Method: http.MethodGet, Path: "/v2/catalog", Header: header(harness.VersionHeader, version)})
		if version == "2.17 " { // HTTP trims header values
			r.want(version, got, http.StatusOK)

			continue
		}

		r.want("an unsupported version: "+version, got, http.StatusPreconditionFailed)

		if !strings.Contains(got.Text("description"), "2.17") {
			r.Errorf("the description names no supported version: %s", got.Raw)
		}
	}

	for _, version := range []string{"2.0", "2.1", "2.9", "2.13", "2.14", "2.16", "2.17", "2.99"} {
		r.want("any minor version of 2 is supported: "+version,
			r.do(harness.Call{Method: http.MethodGet, Path: "/v2/catalog", Header: header(harness.VersionHeader, version)}), http.StatusOK)
	}
}

// rowVersionsCompareAsNumbers binds with API versions before 2.14, which introduced asynchronous binds. If versions were compared as
// text, 2.9 would be later than 2.14.
func rowVersionsCompareAsNumbers(r *row) {
	id := r.createInstance()

	for _, old := range []string{"2.9", "2.13"} {
		r.want("a version before 2.14 binds synchronously: "+old, r.do(harness.Call{
			Method: http.MethodPut, Path: harness.BindingPath(id, "b"+old) + harness.Incomplete, Body: r.binding(), Header: header(harness.VersionHeader, old),
		}), http.StatusCreated)
	}

	for _, recent := range []string{"2.14", "2.17", "2.100"} {
		r.want("a version since 2.14 binds asynchronously: "+recent, r.do(harness.Call{
			Method: http.MethodPut, Path: harness.BindingPath(id, "b"+recent) + harness.Incomplete, Body: r.binding(),
			Header: header(harness.VersionHeader, recent),
		}), http.StatusAccepted)
	}
}

// rowRequestIdentityIsReturned sends unusual requests, whose responses must also contain the request identity. platform.do checks
// the responses in all other rows.
func rowRequestIdentityIsReturned(r *row) {
	calls := []harness.Call{
		{Method: http.MethodGet, Path: "/v2/nothing"},
		{Method: http.MethodPost, Path: "/v2/catalog"},
		{Method: http.MethodPut, Path: harness.InstancePath("x"), Body: strings.Repeat(" ", 2<<20)},
		{Method: http.MethodGet, Path: "/"},
		{Method: http.MethodGet, Path: "/v2/catalog", Header: without("Authorization")},
		{Method: http.MethodGet, Path: "/v2/catalog", Header: without(harness.VersionHeader)},
	}

	for _, call := range append(calls, endpoints(r.newID(), "b")...) {
		if got := r.do(call); got.Header.Get(identityHeader) != identity {
			r.Errorf("%s %s: %d without the request identity", call.Method, call.Path, got.Status)
		}
	}

	got := r.do(harness.Call{Method: http.MethodGet, Path: "/v2/catalog", Header: without(identityHeader)})
	if sent := got.Header.Values(identityHeader); len(sent) > 0 {
		r.Errorf("the response has a request identity although none was sent: %q", sent)
	}
}

func rowRequestIdentityIsLogged(r *row) {
	const own = "0b1c2d3e-8888-4000-8000-00000000a008"

	r.want("an order", r.do(harness.Call{
		Method: http.MethodPut, Path: harness.InstancePath(r.newID()) + harness.Incomplete, Body: r.order(), Header: header(identityHeader, own),
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
