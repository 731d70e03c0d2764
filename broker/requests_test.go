package broker_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// routes returns the methods of the API by path.
func routes() map[string][]string {
	instance := path(instanceID)

	return map[string][]string{
		"/v2/catalog":                    {"GET"},
		instance:                         {"PUT", "GET", "PATCH", "DELETE"},
		instance + "/last_operation":     {"GET"},
		instance + "/service_bindings/b": {"PUT", "GET", "DELETE"},
		instance + "/service_bindings/b/last_operation": {"GET"},
	}
}

func TestAuthentication(t *testing.T) {
	b := newFixture(t)

	callers := map[string]call{
		"nobody":         {user: "nobody"},
		"wrong user":     {user: "somebody", password: password},
		"wrong password": {user: user, password: "guess"},
		"other scheme":   {user: "nobody", header: map[string]string{"Authorization": "Bearer " + password}},
	}

	for who, caller := range callers {
		for route, methods := range routes() {
			for _, method := range append(methods, "POST") {
				for _, form := range []string{"", "/oauth", "/oauth/cf-eu10"} {
					caller.method, caller.path, caller.body = method, form+route+"?accepts_incomplete=true"+ids, order()

					got := b.want("A2: authentication fails: "+who, b.do(caller), 401)
					if got.Header.Get("WWW-Authenticate") == "" {
						b.Errorf("A2: %s %s has no challenge", method, caller.path)
					}
				}
			}
		}

		caller.method, caller.path = "GET", "/v2/unknown"
		b.want("A2: unknown paths require authentication, too", b.do(caller), 401)
	}

	b.want("A3: no instance was created", b.poll(instanceID, ""), 404)
	b.want("users need a role", b.do(call{method: "GET", path: "/v2/catalog", user: "watcher", password: password}), 403)
}

func TestNoAuthenticationWithoutUsers(t *testing.T) {
	b := newFixture(t, func(options *broker.Options) { options.Authorizer = auth.NewAuthorizer(auth.NoAuthentication{}) })
	b.want("authentication can be disabled", b.do(call{method: "GET", path: "/v2/catalog", user: "nobody"}), 200)
}

func TestVersionHeader(t *testing.T) {
	served := []string{"2.0", "2.1", "2.9", "2.13", "2.14", "2.17", "2.99"}
	refused := []string{"", "1.0", "3.0", "abc", "2", "2.", "2.17abc", "2.17.1", "-2.17", "22.1", "99999999999999999999.1"}
	b := newFixture(t)
	b.provisioned(instanceID)

	for _, version := range served {
		for _, route := range []string{"/v2/catalog", path(instanceID)} {
			b.want("A5, A6: compatible versions: "+version, b.do(call{
				method: "GET", path: route, header: map[string]string{"X-Broker-API-Version": version},
			}), 200)
		}
	}

	for _, version := range refused {
		got := b.want("A4, A5: incompatible versions: "+version, b.do(call{
			method: "DELETE", path: path(instanceID) + "?accepts_incomplete=true" + ids,
			header: map[string]string{"X-Broker-API-Version": version},
		}), 412)
		if !strings.Contains(got.text("description"), "2.17") {
			b.Errorf("A5: the description lacks the supported version: %s", got.Raw)
		}
	}

	b.want("the instance still exists", b.get(instanceID), 200)
}

func TestEmptyVersionHeaderCountsAsMissing(t *testing.T) {
	b := newFixture(t)

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.address+"/v2/catalog", nil)
	if err != nil {
		t.Fatal(err)
	}

	request.SetBasicAuth(user, password)
	request.Header["X-Broker-Api-Version"] = []string{""}

	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()

	if response.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("want 412, got %d", response.StatusCode)
	}
}

func TestRequestIdentity(t *testing.T) {
	b := newFixture(t) // do checks each response

	b.want("an unknown path of the protocol", b.do(call{method: "GET", path: "/v2/nothing"}), 404)
	b.want("a method that is not allowed", b.do(call{method: "POST", path: "/v2/catalog"}), 405)
	b.want("a body that is too large", b.do(call{method: "PUT", path: path("x"), body: strings.Repeat(" ", 2<<20)}), 413)
	b.want("an unknown path", b.do(call{method: "GET", path: "/"}), 404)

	got := b.do(call{method: "GET", path: "/v2/catalog", header: map[string]string{"X-Broker-API-Request-Identity": ""}})
	b.want("no identity to echo", got, 200)
}

func TestLogLine(t *testing.T) {
	b := newFixture(t)
	b.want("an order", b.do(call{
		method: "PUT", path: path(instanceID) + "?accepts_incomplete=true", body: order(),
		header: map[string]string{"X-Broker-API-Originating-Identity": "cloudfoundry eyJ1c2VyX2lkIjoiYmVydCJ9"},
	}), 202)

	line := b.log.LastEntry()
	got := logrus.Fields{}

	for _, field := range []string{"requestID", "user", "originator", "instanceID", "method", "path", "status"} {
		got[field] = line.Data[field]
	}

	want := logrus.Fields{
		"requestID": identity, "user": user, "originator": "bert", "instanceID": instanceID, "method": "PUT",
		"path": path(instanceID), "status": 202,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("log line: -want +got\n%s", diff)
	}

	for _, entry := range b.log.AllEntries() {
		if text, _ := entry.String(); strings.Contains(text, "organization_guid") || strings.Contains(text, password) {
			b.Errorf("a log line contains a body or a password: %s", text)
		}
	}
}

func TestPathIDs(t *testing.T) {
	b := newFixture(t)

	same := map[string]string{ // first form, second form
		"a-b": "a%2Db", "a.b": "a%2eb", "a_b~": "a%5Fb%7E", "x": "%78", "with%20space": "with%20space", "a%2Fb": "a%2fb",
		"%C3%BC": "ü", strings.Repeat("i", 255): strings.Repeat("%69", 255), "..%2Fup": "%2e%2e%2Fup",
	}
	for first, then := range same {
		operation := b.want("IDs may contain any visible character", b.put(first, order()), 202).text("operation")

		if got := b.want("percent-encoding does not matter: "+then, b.poll(then, operation), 200); got.text("state") != "in progress" {
			b.Errorf("%s: %s", then, got.Raw)
		}
	}

	for _, bad := range []string{"a%00b", "a%0Ab", "a%7Fb", "%ff", strings.Repeat("i", 256), "a%C2%85b"} {
		for _, method := range []string{"PUT", "GET", "PATCH", "DELETE"} {
			b.want("IDs have at most 255 bytes and no control characters: "+bad,
				b.do(call{method: method, path: path(bad) + "?accepts_incomplete=true" + ids, body: order()}), 400)
		}

		b.want("the same applies to regions", b.do(call{method: "PUT", path: "/oauth/" + bad + path("y") + "?accepts_incomplete=true", body: order()}), 400)
	}

	for _, key := range []string{"x%2Fleftovers%2Fy", "%2Forchestrations%2Fy", "x%2Fservice_bindings%2Fy"} {
		b.want("an ID cannot be the key of other operations: "+key, b.put(key, order()), 400)
		b.want("there is no such instance", b.poll(key, ""), map[bool]int{false: 404, true: 400}[strings.Contains(key, "service_bindings")])
	}

	for _, invisible := range []string{"a%E2%80%8Bb", "a%E2%80%AEb", "a%C2%ADb"} {
		b.want("new IDs have no invisible characters: "+invisible, b.put(invisible, order()), 400)
		b.want("the same applies to validations", b.validate(invisible, order()), 400)
		b.want("and to bindings", b.do(call{method: "PUT", path: path("a-b") + "/service_bindings/" + invisible, body: bindOf(role)}), 400)
		b.want("and to regions", b.do(call{method: "PUT", path: "/oauth/" + invisible + path("y") + "?accepts_incomplete=true", body: order()}), 400)
		b.want("there is no such instance", b.get(invisible), 404)
		b.want("so a deletion has nothing to do", b.remove(invisible), 410)
	}

	for _, nothing := range []string{"/v2/service_instances/", "/v2/service_instances", "/v2//service_instances/x", "/v2/catalog/", "/oauth//v2/catalog"} {
		b.want("D1: an unknown path: "+nothing, b.do(call{method: "PUT", path: nothing, body: order()}), 404)
	}
}

// TestInstanceOfAnOlderReleaseWithInvisibleID sends requests for an instance whose ID earlier releases accepted.
func TestInstanceOfAnOlderReleaseWithInvisibleID(t *testing.T) {
	const id, escaped = "a\u200bb", "a%E2%80%8Bb"

	b := newFixture(t)
	payload := b.payload(b.provisioned("usual"))

	former := b.stored("usual")
	former.ID, former.ShootName = id, "c-former"

	if err := b.options.DB.InTx(b.Context(), func(tx storage.Tx) error {
		if err := storagetest.Insert(b.Context(), tx, b.instances, former); err != nil {
			return err
		}

		return b.operations.Accept(b.Context(), tx, process.New{
			ID: "operation", Kind: environment.KindProvision, InstanceID: id, Payload: payload, Audit: "{}", At: b.clock.Now(),
		})
	}); err != nil {
		t.Fatal(err)
	}

	b.move("operation", process.Succeeded)

	b.want("it can be fetched", b.get(escaped), 200)
	b.want("it can be polled", b.poll(escaped, ""), 200)
	b.want("it can be updated", b.patch(escaped, map[string]any{"service_id": serviceID}), 200)
	b.want("its bindings can be fetched", b.do(call{method: "GET", path: path(escaped) + "/service_bindings/none"}), 404)
	b.want("it cannot be ordered again", b.put(escaped, order()), 400)
	b.want("it can be deleted", b.remove(escaped), 202)
}

func TestOriginatingIdentityIsReadLeniently(t *testing.T) {
	b := newFixture(t)
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

	users := map[string]string{
		"cloudfoundry " + encode(`{"user_id":"u"}`):             "u",
		"kubernetes " + encode(`{"username":"k","groups":[1]}`): "k",
		"service-manager " + encode(`{"username":"s"}`):         "s",
		"x":                                    "",
		"x ":                                   "",
		"x " + encode(`[]`):                    "",
		"x " + encode(`{"user_id":5}`):         "",
		"x rubbish!":                           "",
		"x " + encode(`{"username":"two"}`):    "two",
		"x  " + encode(`{"username":"space"}`): "space",
	}
	for header, want := range users {
		b.want("an invalid header is ignored: "+header, b.do(call{
			method: "GET", path: "/v2/catalog", header: map[string]string{"X-Broker-API-Originating-Identity": header},
		}), 200)

		if got, _ := b.log.LastEntry().Data["originator"].(string); got != want {
			b.Errorf("%s: want originator %q in the log, got %q", header, want, got)
		}
	}
}

func TestPlatformsMayDisagree(t *testing.T) {
	b := newFixture(t)
	b.want("K3: the platform of the header is not checked", b.do(call{
		method: "PUT", path: path(instanceID) + "?accepts_incomplete=true", body: order(),
		header: map[string]string{"X-Broker-API-Originating-Identity": "kubernetes e30="},
	}), 202)
}

func TestMethodNotAllowedListsMethods(t *testing.T) {
	b := newFixture(t)

	got := b.want("a 405 lists the allowed methods", b.do(call{method: "POST", path: path(instanceID)}), 405)
	if diff := cmp.Diff("DELETE, GET, PATCH, PUT", got.Header.Get("Allow")); diff != "" {
		b.Errorf("Allow: -want +got\n%s", diff)
	}

	head := b.want("HEAD is a GET without a body", b.do(call{method: "HEAD", path: "/v2/catalog"}), 200)
	if head.Raw != "" || head.Header.Get("Etag") == "" {
		b.Errorf("HEAD: %+v", head)
	}
}

func TestPathsOutsideOfTheProtocol(t *testing.T) {
	b := newFixture(t, func(options *broker.Options) {
		options.Otherwise = httpserver.EchoRequestIdentity(httpserver.Endpoint(func(*http.Request) (httpserver.Response, error) { return httpserver.OK(struct{}{}), nil }))
	})

	b.want("the handler of other paths", b.do(call{method: "GET", path: "/runtimes", user: "nobody"}), 200)
	b.want("paths of the protocol keep their handler", b.do(call{method: "GET", path: "/oauth/x", user: "nobody"}), 401)
}

func TestPanicIsAnswered(t *testing.T) {
	b := newFixture(t, func(options *broker.Options) { options.Wake = func() { panic("internal secret") } })
	b.faulty = true

	got := b.want("the response does not contain the cause", b.put(instanceID, order()), 500)
	if strings.Contains(got.Raw, "secret") {
		b.Errorf("the response contains internals: %s", got.Raw)
	}
}
