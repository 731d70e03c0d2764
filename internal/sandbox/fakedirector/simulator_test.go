package fakedirector_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

func ask(t *testing.T, d *fakedirector.Director, tenant, token, query string) string {
	t.Helper()

	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}

	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, fakedirector.GraphQLPath, strings.NewReader(string(body)))
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Tenant", tenant)

	answer := httptest.NewRecorder()
	d.ServeHTTP(answer, request)

	return answer.Body.String()
}

func login(t *testing.T, d *fakedirector.Director, secret, grant string) (token string, status int) {
	t.Helper()

	form := url.Values{"grant_type": {grant}, "scope": {"runtime:read runtime:write"}}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, fakedirector.TokenPath, strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth(fakedirector.DefaultClientID, secret)

	answer := httptest.NewRecorder()
	d.ServeHTTP(answer, request)

	var issued struct {
		Token string `json:"access_token"`
	}

	_ = json.Unmarshal(answer.Body.Bytes(), &issued)

	return issued.Token, answer.Code
}

// TestRequestsWithLiterals checks the responses to requests with aliases, and with literals instead
// of variables.
func TestRequestsWithLiterals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "director.json")

	d, err := fakedirector.New(fakedirector.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}

	token, _ := login(t, d, fakedirector.DefaultClientSecret, "client_credentials")

	answer := ask(t, d, "t", token, `mutation { made: registerRuntime(in: {name: "one", labels: {order: "1"}, statusCondition: PROVISIONING}) { id status { condition } } }`)

	runtimes := d.Runtimes()
	if len(runtimes) != 1 || !strings.Contains(answer, fmt.Sprintf(`{"data":{"made":{"id":%q,"status":{"condition":"PROVISIONING"}}}}`, runtimes[0].ID)) {
		t.Fatalf("got runtimes %v and response %s, want one runtime", runtimes, answer)
	}

	id := runtimes[0].ID

	again, err := fakedirector.New(fakedirector.Options{File: file})
	if err != nil || len(again.Runtimes()) != 1 || again.Runtimes()[0].ID != id {
		t.Errorf("got runtimes %v (%v) after a restart, want the registered one", again.Runtimes(), err)
	}

	cases := map[string]struct{ reason, tenant, token, query, want string }{
		"by key":         {"any value matches", "t", token, `{ result: runtimes(filter: {key: "order"}) { totalCount } }`, `"totalCount":1`},
		"by value":       {"a different value does not match", "t", token, `{ result: runtimes(filter: [{key: "order", query: "\"2\""}]) { totalCount } }`, `"totalCount":0`},
		"odd query":      {"a value must be JSON", "t", token, `{ result: runtimes(filter: {key: "order", query: "1 2"}) { totalCount } }`, `"error_code":22`},
		"unknown":        {"the result is null", "t", token, `{ result: runtime(id: "none") { id } }`, `{"data":{"result":null}}`},
		"other tenant":   {"tenants are isolated", "u", token, `{ result: runtime(id: "` + id + `") { id } }`, `{"data":{"result":null}}`},
		"no tenant":      {"the tenant is required", "", token, `{ result: runtime(id: "none") { id } }`, `"error_code":24`},
		"no token":       {"authentication is required", "t", "bad", `{ result: runtime(id: "none") { id } }`, `"error_code":26`},
		"bad name":       {"Director's rules", "t", token, `mutation { result: registerRuntime(in: {name: "1Large"}) { id } }`, `"error_code":22`},
		"odd labels":     {"a value can be any JSON", "t", token, `mutation { result: registerRuntime(in: {name: "a", labels: {_: [1]}}) { name labels } }`, `"labels":{"_":[1]}`},
		"unknown field":  {"the schema is the contract", "t", token, `{ result: runtime(id: "none") { colour } }`, `Cannot query field`},
		"bad label":      {"Director's rules", "t", token, `mutation { result: registerRuntime(in: {name: "a", labels: {ä: 1}}) { id } }`, `"errors"`},
		"not registered": {"an unknown runtime cannot be removed", "t", token, `mutation { result: unregisterRuntime(id: "none") { id } }`, `"error_code":20`},
	}

	for name, c := range cases {
		if answer := ask(t, d, c.tenant, c.token, c.query); !strings.Contains(answer, c.want) {
			t.Errorf("%s: %s: got %s, want %s", name, c.reason, answer, c.want)
		}
	}

	d.Forget("t")

	if answer := ask(t, d, "t", token, `{ result: runtime(id: "none") { id } }`); !strings.Contains(answer, `"error_code":25`) {
		t.Errorf("an unknown tenant must be rejected, got: %s", answer)
	}
}

func TestTokensForCredentials(t *testing.T) {
	d, err := fakedirector.New(fakedirector.Options{})
	if err != nil {
		t.Fatal(err)
	}

	if _, status := login(t, d, "wrong", "client_credentials"); status != http.StatusUnauthorized {
		t.Errorf("a wrong secret must be rejected, got: %d", status)
	}

	if _, status := login(t, d, fakedirector.DefaultClientSecret, "password"); status != http.StatusBadRequest {
		t.Errorf("an unsupported grant type must be rejected, got: %d", status)
	}
}

func TestConnector(t *testing.T) {
	file, now := filepath.Join(t.TempDir(), "director.json"), time.Now()

	d, err := fakedirector.New(fakedirector.Options{File: file, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}

	access, _ := login(t, d, fakedirector.DefaultClientSecret, "client_credentials")
	ask(t, d, "t", access, `mutation { result: registerRuntime(in: {name: "one"}) { id } }`)

	id := d.Runtimes()[0].ID
	for range 2 {
		ask(t, d, "t", access, `mutation { result: requestOneTimeTokenForRuntime(id: "`+id+`") { token } }`)
	}

	given := d.Runtimes()[0].OneTimeTokens

	for _, step := range []struct {
		reason, url, token string
		later              time.Duration
		want               bool
	}{
		{"there is one Connector", "https://elsewhere.example.com", given[0].Token, 0, false},
		{"a token is valid", fakedirector.DefaultConnectorURL, given[0].Token, 0, true},
		{"a token is valid once", fakedirector.DefaultConnectorURL, given[0].Token, 0, false},
		{"only issued tokens are valid", fakedirector.DefaultConnectorURL, "made-up", 0, false},
		{"a token expires", fakedirector.DefaultConnectorURL, given[1].Token, 2 * time.Hour, false},
	} {
		now = now.Add(step.later)

		if err := d.Connect(t.Context(), step.url, step.token); (err == nil) != step.want {
			t.Errorf("%s: got %v", step.reason, err)
		}
	}

	again, err := fakedirector.New(fakedirector.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}

	if err := again.Connect(t.Context(), fakedirector.DefaultConnectorURL, given[0].Token); err == nil {
		t.Error("a restarted Director accepted a spent token")
	}
}

// TestPage shows a Director on the page of the simulated systems, with a fault that the page has injected.
func TestPage(t *testing.T) {
	d, err := fakedirector.New(fakedirector.Options{})
	if err != nil {
		t.Fatal(err)
	}

	pages := simulator.NewHandler(d)
	send := func(method, path, body string) (int, string) {
		answer := httptest.NewRecorder()
		pages.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))

		return answer.Code, answer.Body.String()
	}

	token, _ := login(t, d, fakedirector.DefaultClientSecret, "client_credentials")
	register := `mutation { result: registerRuntime(in: {name: "first", labels: {}}) { id } }`

	ask(t, d, "tenant-1", token, register)
	id := d.Runtimes()[0].ID
	ask(t, d, "tenant-1", token, `mutation { result: requestOneTimeTokenForRuntime(id: "`+id+`") { token } }`)

	if status, body := send(http.MethodPost, "/simulators/director/faults", `{"operation": "registerRuntime", "status": 503, "times": 2}`); status != http.StatusNoContent {
		t.Errorf("injecting a fault: %d %s", status, body)
	}

	if got := ask(t, d, "tenant-1", token, register); !strings.Contains(got, "Service Unavailable") {
		t.Errorf("the injected fault: %s", got)
	}

	_, page := send(http.MethodGet, "/simulators", "")
	for _, want := range []string{
		"<h2>director</h2>", "runtime " + id + " (first) of tenant tenant-1: INITIAL, one-time tokens: 1", "registerRuntime: status 503, 1 calls left",
		"<td>registerRuntime</td><td>POST /graphql</td><td>200</td>", "<td>registerRuntime</td><td>POST /graphql</td><td>503</td>",
		"<td>token</td><td>POST /oauth/token</td><td>200</td>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q:\n%s", want, page)
		}
	}

	if issued := d.Runtimes()[0].OneTimeTokens[0].Token; strings.Contains(page, issued) || strings.Contains(page, token) {
		t.Error("the page shows a token")
	}

	if status, _ := send(http.MethodDelete, "/simulators/director/faults", ""); status != http.StatusNoContent {
		t.Errorf("withdrawing the faults: %d", status)
	}

	if got := ask(t, d, "tenant-1", token, register); !strings.Contains(got, `"id"`) {
		t.Errorf("without the fault: %s", got)
	}
}
