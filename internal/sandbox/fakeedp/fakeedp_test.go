package fakeedp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/edp"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeedp"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

// call sends a request and returns the status and the body of the response.
func call(t *testing.T, method, address, body string) (int, string) {
	t.Helper()

	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()

	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}

	return response.StatusCode, string(text)
}

func TestPage(t *testing.T) {
	server := httptest.NewServer(simulator.NewHandler(fakeedp.New()))
	t.Cleanup(server.Close)

	config := edp.DefaultConfig()
	config.AuthURL, config.AdminURL, config.Secret, config.Timeout = server.URL+"/edp", server.URL+"/edp", fakeedp.Secret, time.Minute
	client := edp.New(config, http.DefaultTransport)
	faults := server.URL + "/simulators/edp/faults"

	if status, _ := call(t, http.MethodPost, faults, `{"status": 503, "times": 2}`); status != http.StatusNoContent {
		t.Errorf("injecting a fault returns %d", status)
	}

	if status, _ := call(t, http.MethodPost, faults, `{"state": 503}`); status != http.StatusBadRequest {
		t.Errorf("an unknown field returns %d", status)
	}

	if err := client.Register(t.Context(), edp.Tenant{Name: "Sub-1", PlatformRegion: "cf-eu10"}); !failure.Is(err, failure.Transient) {
		t.Errorf("the injected fault is %v", err)
	}

	_, page := call(t, http.MethodGet, server.URL+"/simulators", "")
	if !strings.Contains(page, "every call: status 503, 1 calls left") {
		t.Errorf("the page does not show the remaining fault:\n%s", page)
	}

	if status, _ := call(t, http.MethodDelete, faults, ""); status != http.StatusNoContent {
		t.Errorf("withdrawing the faults returns %d", status)
	}

	if err := client.Register(t.Context(), edp.Tenant{Name: "Sub-1", PlatformRegion: "cf-eu10"}); err != nil {
		t.Error(err)
	}

	_, page = call(t, http.MethodGet, server.URL+"/simulators", "")
	for _, want := range []string{"data tenant sub-1/dev", "createMetadata", "<td>201</td>", "<td>503</td>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q:\n%s", want, page)
		}
	}

	for _, secret := range []string{fakeedp.Secret, "edp-token-", "Basic", "Bearer"} {
		if strings.Contains(page, secret) {
			t.Errorf("the page contains the secret %q", secret)
		}
	}
}

// TestContract checks the responses on which the client relies.
func TestContract(t *testing.T) {
	server := httptest.NewServer(fakeedp.New())
	t.Cleanup(server.Close)

	for _, path := range []string{"", "/sub/dev/metadata"} {
		if status, _ := call(t, http.MethodPost, server.URL+"/namespaces/"+fakeedp.Namespace+"/dataTenants"+path, "{}"); status != http.StatusUnauthorized {
			t.Errorf("a call without a token returns %d", status)
		}
	}

	if status, _ := call(t, http.MethodPost, server.URL+"/oauth2/token", ""); status != http.StatusUnauthorized {
		t.Errorf("a request for a token without credentials returns %d", status)
	}
}
