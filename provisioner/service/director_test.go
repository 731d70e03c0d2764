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

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	simulator "github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/provisioner/service"
)

// credentialsFile writes a file with credentials that the simulated Director accepts.
func credentialsFile(t *testing.T, endpoint string) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "director.yaml")
	text := fmt.Sprintf("data: {client_id: %s, client_secret: %s, tokens_endpoint: %q}",
		simulator.DefaultClientID, simulator.DefaultClientSecret, endpoint)

	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	return path
}

// startWithDirector starts a Provisioner that registers its runtimes.
func startWithDirector(t *testing.T) (fixture, *simulator.Director) {
	t.Helper()

	director, err := simulator.New(simulator.Options{})
	if err != nil {
		t.Fatal(err)
	}

	server := httptest.NewServer(director)
	t.Cleanup(server.Close)

	return start(t, 200*time.Millisecond, func(c *service.Config) {
		c.Director.Enabled, c.Director.URL = true, server.URL+simulator.GraphQLPath
		c.Director.OAuthPath = credentialsFile(t, server.URL+simulator.TokenPath)
	}), director
}

func TestDirectorListsARuntimeUntilItsRemoval(t *testing.T) {
	l, director := startWithDirector(t)

	ordered := l.provision("key-1", "c-first")
	l.succeeded(ordered.ID)

	shoot, _ := l.shoot("c-first")
	told := director.Runtimes()[0]
	want := simulator.Runtime{
		ID: ordered.RuntimeID, Tenant: tenant, Name: "c-first", Condition: "PROVISIONING", Labels: map[string]any{
			"gardenerClusterName": "c-first", "gardenerClusterDomain": *shoot.Spec.DNS.Domain,
			registration.LabelOrder: told.Labels[registration.LabelOrder],
		},
	}

	if diff := cmp.Diff(want, told, cmpopts.IgnoreTypes(time.Time{})); diff != "" {
		t.Errorf("registered, -want +got:\n%s", diff)
	}

	_, err := l.client.ProvisionRuntime(t.Context(), provisionerclient.Caller{Tenant: "stranger"}, order("c-first"))
	if failure.Of(err).Reason != failure.ReasonAlreadyExists || len(director.Runtimes()) != 1 {
		t.Errorf("a refused order: got %v and %d registered runtimes", err, len(director.Runtimes()))
	}

	l.succeeded(l.deprovision(ordered.RuntimeID))

	if left := director.Runtimes(); len(left) > 0 {
		t.Errorf("after the removal Director lists %v", left)
	}
}

func TestFailedProvisioningIsReportedToDirector(t *testing.T) {
	l, director := startWithDirector(t)
	l.order(gardenlet.FaultQuota)

	if status := l.await(l.provision("", "c-faulty").ID); status.State != provisionerclient.StateFailed {
		t.Fatalf("ended in state %s", status.State)
	}

	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()

	for deadline := time.Now().Add(patience); ; <-look.C {
		if director.Runtimes()[0].Condition == "FAILED" {
			return
		}

		if time.Now().After(deadline) {
			t.Fatalf("the failure was not reported: %v", director.Runtimes())
		}
	}
}

func TestOrderThatDirectorRefusesStoresNothing(t *testing.T) {
	l, director := startWithDirector(t)
	director.Inject(simulator.Fault{Operation: "registerRuntime", Code: simulator.InvalidData}, simulator.Fault{Operation: "runtimes", Code: simulator.TenantNotFound})

	for _, reason := range []string{"TenantNotFound", "InvalidData"} {
		_, err := l.client.ProvisionRuntime(t.Context(), provisionerclient.Caller{Tenant: tenant}, order("c-first"))

		got := failure.Of(err)
		if got.Kind != failure.Permanent || got.Reason != reason || got.Component != failure.ComponentDirector {
			t.Errorf("got %s, %s of %q: %v", got.Kind, got.Reason, got.Component, err)
		}
	}

	l.succeeded(l.provision("", "c-first").ID)
}

// authority returns a certificate authority and the file of its certificate.
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

// TestDirectorAuthorityFile: Director and its token endpoint have certificates of a private authority.
func TestDirectorAuthorityFile(t *testing.T) {
	director, err := simulator.New(simulator.Options{})
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
			l := start(t, 200*time.Millisecond, func(config *service.Config) {
				config.Director.Enabled, config.Director.URL = true, server.URL+simulator.GraphQLPath
				config.Director.OAuthPath, config.Director.CAFile = credentialsFile(t, server.URL+simulator.TokenPath), c.file
			})

			_, err := l.client.ProvisionRuntime(t.Context(), provisionerclient.Caller{Tenant: tenant}, order("c-"+name))
			if c.accepted != (err == nil) || !c.accepted && !failure.Is(err, failure.Transient) {
				t.Errorf("%s: got %v", c.reason, err)
			}
		})
	}
}
