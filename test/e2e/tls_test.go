package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/reload"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
	"github.com/environment-broker/environment-broker/test/harness"
)

// certificates is a folder with a CA certificate and the certificates that this CA has issued.
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

	created := certificates{T: t, dir: t.TempDir(), authority: authority}
	created.write("ca.pem", authority.CertificatePEM())

	return created
}

func (c certificates) file(name string) string { return filepath.Join(c.dir, name) }

func (c certificates) write(name string, content []byte) {
	c.Helper()

	if err := os.WriteFile(c.file(name), content, 0o600); err != nil {
		c.Fatal(err)
	}
}

func (c certificates) save(name string, pair certificate.Pair, err error) {
	c.Helper()

	if err != nil {
		c.Fatal(err)
	}

	c.write(name+".pem", pair.Certificate)
	c.write(name+".key", pair.Key)
}

// server issues a server certificate and returns the server's TLS settings. client is the common name of the only client with the
// osb role.
func (c certificates) server(name, client string) auth.Config {
	c.Helper()

	pair, err := c.authority.IssueServer(name, "127.0.0.1")
	c.save(name, pair, err)

	config := auth.Default()
	config.TLS = auth.TLS{CertFile: c.file(name + ".pem"), KeyFile: c.file(name + ".key"), ClientCAFile: c.file("ca.pem")}
	config.CertificateRoles = "osb=cn:" + client

	return config
}

// client issues a client certificate and returns the client's TLS settings.
func (c certificates) client(name string) reload.ClientTLS {
	c.Helper()

	pair, err := c.authority.IssueClient(certificate.Client{CommonName: name, Validity: time.Hour})
	c.save(name, pair, err)

	return reload.ClientTLS{CAFile: c.file("ca.pem"), CertFile: c.file(name + ".pem"), KeyFile: c.file(name + ".key")}
}

// TestInstanceOverTLS orders an instance. The platform calls the broker over TLS, and the broker calls the Provisioner over
// TLS. Each client authenticates only with a certificate.
func TestInstanceOverTLS(t *testing.T) {
	t.Parallel()

	files := newCertificates(t)

	memory := harness.StartGarden(t, 50*time.Millisecond)
	provisionerSettings := harness.ProvisionerSettings(harness.SQLite(t, "provisioner"))
	provisionerSettings.Access = files.server("provisioner-server", "broker")

	url, _ := harness.StartProvisioner(t, memory.Client(), provisionerSettings, logging.Discard())
	clientTLS := files.client("broker")

	settings := harness.BrokerSettings(harness.SQLite(t, "broker"))
	settings.AuthBasicUsers = ""
	settings.Provisioner.URL = strings.Replace(url, "http:", "https:", 1)
	settings.Provisioner.CAFile, settings.Provisioner.CertFile, settings.Provisioner.KeyFile = clientTLS.CAFile, clientTLS.CertFile, clientTLS.KeyFile
	settings.Access = files.server("broker-server", "platform")

	service := harness.StartBroker(t, settings, logging.Discard())

	connect := func(name string) platform {
		metrics := prometheus.NewRegistry()

		client, err := files.client(name).Transport(reload.NewWatcher(logging.Discard(), clock.RealClock{}, metrics), name)
		if err != nil {
			t.Fatal(err)
		}

		transport := withoutPassword{client}
		t.Cleanup(transport.CloseIdleConnections)

		p := newPlatform(t, strings.Replace(service.URL, "http:", "https:", 1))
		p.Transport = transport

		return p
	}

	const id = "instance"

	connect("unknown").Send(http.MethodPut, harness.InstancePath(id)+harness.Incomplete, harness.Order(harness.PlanAWS), http.StatusForbidden)

	client := connect("platform")
	client.Create(id, harness.PlanAWS)
	client.WantSucceeded(id)
	client.Delete(id, harness.PlanAWS)
	client.WantGone(id)
}

// withoutPassword removes the password from requests, so that only the client certificate authenticates them.
type withoutPassword struct{ *reload.Transport }

func (c withoutPassword) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Del("Authorization")

	return c.Transport.RoundTrip(r)
}
