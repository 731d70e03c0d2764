package service_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/provisioner/director"
	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/provisioner/service"
)

// credentialsFile writes the credentials of the fake Director to a file and returns its path.
func credentialsFile(t *testing.T, endpoint string) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "director.yaml")
	text := fmt.Sprintf("data: {client_id: %s, client_secret: %s, tokens_endpoint: %q}",
		fakedirector.DefaultClientID, fakedirector.DefaultClientSecret, endpoint)

	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	return path
}

// startWithDirector starts a Provisioner that registers runtimes in a fake Director.
func startWithDirector(t *testing.T) (fixture, *fakedirector.Director) {
	t.Helper()

	director, err := fakedirector.New(fakedirector.Options{})
	if err != nil {
		t.Fatal(err)
	}

	server := httptest.NewServer(director)
	t.Cleanup(server.Close)

	return start(t, 200*time.Millisecond, func(c *service.Config) {
		c.Director.Enabled, c.Director.URL = true, server.URL+fakedirector.GraphQLPath
		c.Director.OAuthPath = credentialsFile(t, server.URL+fakedirector.TokenPath)
	}), director
}

func TestDirectorListsARuntimeUntilItsRemoval(t *testing.T) {
	f, director := startWithDirector(t)

	ordered := f.provision("key-1", "c-first")
	f.succeeded(ordered.ID)

	shoot, _ := f.shoot("c-first")
	registered := director.Runtimes()[0]
	want := fakedirector.Runtime{
		ID: ordered.RuntimeID, Tenant: tenant, Name: "c-first", Condition: "PROVISIONING", Labels: map[string]any{
			"gardenerClusterName": "c-first", "gardenerClusterDomain": *shoot.Spec.DNS.Domain,
			registration.LabelOrder: registered.Labels[registration.LabelOrder],
		},
	}

	if diff := cmp.Diff(want, registered, cmpopts.IgnoreTypes(time.Time{})); diff != "" {
		t.Errorf("registered, -want +got:\n%s", diff)
	}

	_, err := f.client.ProvisionRuntime(t.Context(), provisionerclient.Caller{Tenant: "another-tenant"}, order("c-first"))
	if failure.Of(err).Reason != failure.ReasonAlreadyExists || len(director.Runtimes()) != 1 {
		t.Errorf("a rejected order: got %v and %d registered runtimes", err, len(director.Runtimes()))
	}

	f.succeeded(f.deprovision(ordered.RuntimeID))

	if left := director.Runtimes(); len(left) > 0 {
		t.Errorf("Director lists %v after the removal", left)
	}
}

func TestConsoleOfDirector(t *testing.T) {
	f, simulated := startWithDirector(t)
	ordered := f.provision("key-1", "c-first")
	f.succeeded(ordered.ID)

	for _, c := range []struct {
		reason string
		label  any
		want   string
	}{
		{"the agent has not set it", nil, ""},
		{"the label of the agent", "https://console.example.com/c-first", "https://console.example.com/c-first"},
		{"users open the address", "javascript:alert(1)", ""},
		{"a label can be any JSON", 7, ""},
	} {
		if c.label != nil {
			simulated.SetLabel(ordered.RuntimeID, director.LabelConsole, c.label)
		}

		if got, err := f.client.Console(t.Context(), tenant, ordered.RuntimeID); err != nil || got != c.want {
			t.Errorf("%s: got %q, %v", c.reason, got, err)
		}
	}

	simulated.Inject(fakedirector.Fault{Operation: "runtime", Unsent: true})

	if _, err := f.client.Console(t.Context(), tenant, ordered.RuntimeID); !failure.Is(err, failure.Transient) {
		t.Errorf("with Director away: %v", err)
	}

	if _, err := f.client.Console(t.Context(), "another-tenant", ordered.RuntimeID); !failure.Is(err, failure.NotFound) && !failure.Is(err, failure.Permanent) {
		t.Errorf("for another tenant: %v", err)
	}

	simulated.Forget(tenant)

	if got, err := f.client.Console(t.Context(), tenant, ordered.RuntimeID); err != nil || got != "" {
		t.Errorf("a tenant that Director does not know: got %q, %v", got, err)
	}
}

// TestConsoleOfALongAccount checks that Director is asked for the account as the client names it, not for its label.
func TestConsoleOfALongAccount(t *testing.T) {
	f, simulated := startWithDirector(t)
	account := provisionerclient.Caller{Tenant: "Account with spaces!"}

	ordered, err := f.client.ProvisionRuntime(t.Context(), account, order("c-first"))
	if err != nil {
		t.Fatal(err)
	}

	simulated.SetLabel(ordered.RuntimeID, director.LabelConsole, "https://console.example.com")

	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got, err := f.client.Console(t.Context(), account.Tenant, ordered.RuntimeID)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("got %q, %v", got, err)
		}

		if got != "" { // the cluster exists
			return
		}
	}
}

func TestFailedProvisioningIsReportedToDirector(t *testing.T) {
	f, director := startWithDirector(t)
	f.injectFault(gardenlet.FaultQuota)

	if status := f.await(f.provision("", "c-faulty").ID); status.State != provisionerclient.StateFailed {
		t.Fatalf("ended in state %s", status.State)
	}

	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()

	for deadline := time.Now().Add(patience); ; <-poll.C {
		if director.Runtimes()[0].Condition == "FAILED" {
			return
		}

		if time.Now().After(deadline) {
			t.Fatalf("the failure was not reported: %v", director.Runtimes())
		}
	}
}

func TestOrderThatDirectorRefusesStoresNothing(t *testing.T) {
	f, director := startWithDirector(t)
	director.Inject(fakedirector.Fault{Operation: "registerRuntime", Body: fakedirector.Rejection(fakedirector.InvalidData)}, fakedirector.Fault{Operation: "runtimes", Body: fakedirector.Rejection(fakedirector.TenantNotFound)})

	for _, reason := range []string{"TenantNotFound", "InvalidData"} {
		_, err := f.client.ProvisionRuntime(t.Context(), provisionerclient.Caller{Tenant: tenant}, order("c-first"))

		got := failure.Of(err)
		if got.Kind != failure.Permanent || got.Reason != reason || got.Component != failure.ComponentDirector {
			t.Errorf("got %s, %s of %q: %v", got.Kind, got.Reason, got.Component, err)
		}
	}

	f.succeeded(f.provision("", "c-first").ID)
}

// authority creates a certificate authority and returns it with the path of its certificate.
func authority(t *testing.T, name string) (*certificate.Authority, string) {
	t.Helper()

	key, err := certificate.NewKey()
	if err != nil {
		t.Fatal(err)
	}

	made, err := certificate.NewAuthority(name, key)
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), name+".pem")
	if err := os.WriteFile(path, made.CertificatePEM(), 0o600); err != nil {
		t.Fatal(err)
	}

	return made, path
}

// TestDirectorAuthorityFile checks that the configured authorities decide whether a Director with a private certificate is
// trusted.
func TestDirectorAuthorityFile(t *testing.T) {
	director, err := fakedirector.New(fakedirector.Options{})
	if err != nil {
		t.Fatal(err)
	}

	company, ours := authority(t, "company")
	_, others := authority(t, "others")

	pair, err := company.IssueServer("director", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}

	shown, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}

	server := httptest.NewUnstartedServer(director)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // some handshakes fail as expected
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{shown}}
	server.StartTLS()
	t.Cleanup(server.Close)

	for name, c := range map[string]struct {
		reason, file string
		accepted     bool
	}{
		"company": {"the authority of the file is trusted, for tokens and for Director", ours, true},
		"others":  {"other authorities are not trusted", others, false},
		"system":  {"the system does not trust the private authority", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, 200*time.Millisecond, func(config *service.Config) {
				config.Director.Enabled, config.Director.URL = true, server.URL+fakedirector.GraphQLPath
				config.Director.OAuthPath, config.Director.CAFile = credentialsFile(t, server.URL+fakedirector.TokenPath), c.file
			})

			_, err := f.client.ProvisionRuntime(t.Context(), provisionerclient.Caller{Tenant: tenant}, order("c-"+name))
			if c.accepted != (err == nil) || !c.accepted && !failure.Is(err, failure.Transient) {
				t.Errorf("%s: got %v", c.reason, err)
			}
		})
	}
}
