package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/reload"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
)

// certificates are files of an authority and of what it has signed.
type certificates struct {
	*testing.T

	dir       string
	authority *certificate.Authority
}

func newCertificates(t *testing.T) certificates {
	t.Helper()

	key, err := certificate.NewKey()
	if err != nil {
		t.Fatal(err)
	}

	authority, err := certificate.NewAuthority("ours", key)
	if err != nil {
		t.Fatal(err)
	}

	made := certificates{T: t, dir: t.TempDir(), authority: authority}
	made.write("ca.pem", authority.CertificatePEM())

	return made
}

func (c certificates) file(name string) string { return filepath.Join(c.dir, name) }

func (c certificates) write(name string, content []byte) {
	c.Helper()

	if err := os.WriteFile(c.file(name), content, 0o600); err != nil {
		c.Fatal(err)
	}
}

func (c certificates) keep(name string, pair certificate.Pair, err error) {
	c.Helper()

	if err != nil {
		c.Fatal(err)
	}

	c.write(name+".pem", pair.Certificate)
	c.write(name+".key", pair.Key)
}

// server signs a certificate for a server on this machine, and lets in who shows one of the common name, with the role osb.
func (c certificates) server(name, client string) auth.Config {
	c.Helper()

	pair, err := c.authority.IssueServer(name, "127.0.0.1")
	c.keep(name, pair, err)

	config := auth.Default()
	config.TLS = auth.TLS{CertFile: c.file(name + ".pem"), KeyFile: c.file(name + ".key"), ClientCAFile: c.file("ca.pem")}
	config.CertificateRoles = "osb=cn:" + client

	return config
}

// client signs a certificate for a client.
func (c certificates) client(name string) reload.ClientTLS {
	c.Helper()

	pair, err := c.authority.IssueClient(certificate.Client{CommonName: name, Validity: time.Hour})
	c.keep(name, pair, err)

	return reload.ClientTLS{CAFile: c.file("ca.pem"), CertFile: c.file(name + ".pem"), KeyFile: c.file(name + ".key")}
}

// TestInstanceOverTLS has the platform order from the broker, and that from the Provisioner, over TLS, each known by its certificate
// and by nothing else.
func TestInstanceOverTLS(t *testing.T) {
	t.Parallel()

	files := newCertificates(t)

	memory, err := fakegarden.Open(t.Context(), fakegarden.Options{Dir: filepath.Join(t.TempDir(), "garden"), ClusterCreation: look, Log: logging.Discard()})
	if err != nil {
		t.Fatal(err)
	}

	run(t, memory.Run)

	provisionerSettings := provisioner.DefaultConfig()
	provisionerSettings.Address, provisionerSettings.StatusAddress = "127.0.0.1:0", "127.0.0.1:0"
	provisionerSettings.ShutdownDelay = 0
	provisionerSettings.Database = onSQLite(t, "provisioner")
	provisionerSettings.Gardener.Project = fakegarden.DefaultProject
	provisionerSettings.Access = files.server("provisioner-server", "broker")

	runtimes, err := provisioner.New(t.Context(), provisionerSettings, memory.Client(), logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	run(t, runtimes.Run)

	shown := files.client("broker")

	settings := broker.DefaultConfig()
	settings.Address, settings.StatusAddress = "127.0.0.1:0", "127.0.0.1:0"
	settings.ShutdownDelay = 0
	settings.Database = onSQLite(t, "broker")
	settings.Provisioner.URL = "https://" + runtimes.Address() + "/graphql"
	settings.Provisioner.CAFile, settings.Provisioner.CertFile, settings.Provisioner.KeyFile = shown.CAFile, shown.CertFile, shown.KeyFile
	settings.Access = files.server("broker-server", "platform")

	instances, err := broker.New(t.Context(), settings, logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	run(t, instances.Run)

	as := func(name string) platform {
		metrics := prometheus.NewRegistry()

		client, err := files.client(name).Transport(reload.NewWatcher(logging.Discard(), clock.RealClock{}, metrics), name)
		if err != nil {
			t.Fatal(err)
		}

		transport := certified{client}
		t.Cleanup(transport.CloseIdleConnections)

		return platform{TB: t, url: "https://" + instances.Address(), client: &http.Client{Transport: transport}}
	}

	const id = "instance"

	as("stranger").send(http.MethodPut, instancePath(id)+"?accepts_incomplete=true", orderOf(planAWS), http.StatusForbidden)

	ours := as("platform")
	ours.create(id, planAWS)
	ours.succeeded(id)
	ours.remove(id, planAWS)
	ours.gone(id)
}

// certified sends no password.
type certified struct{ *reload.Transport }

func (c certified) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Del("Authorization")

	return c.Transport.RoundTrip(r)
}
