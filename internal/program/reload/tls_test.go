package reload

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
)

type folder struct {
	*testing.T

	path string
}

func (f folder) file(name string) string { return filepath.Join(f.path, name) }

func (f folder) write(name string, content []byte) string {
	f.Helper()

	if err := os.WriteFile(f.file(name), content, 0o600); err != nil {
		f.Fatal(err)
	}

	return f.file(name)
}

func (f folder) pair(name string, pair certificate.Pair, err error) {
	f.Helper()

	if err != nil {
		f.Fatal(err)
	}

	f.write(name+".crt", pair.Certificate)
	f.write(name+".key", pair.Key)
}

func authority(t *testing.T, name string) *certificate.Authority {
	t.Helper()

	key, err := certificate.NewKey()
	if err != nil {
		t.Fatal(err)
	}

	made, err := certificate.NewAuthority(name, key)
	if err != nil {
		t.Fatal(err)
	}

	return made
}

// newWatcher returns a watcher that checks its files only when the test calls checkOnce.
func newWatcher() (*Watcher, *prometheus.Registry) {
	metrics := prometheus.NewRegistry()

	return NewWatcher(logging.Discard(), clock.RealClock{}, metrics), metrics
}

// checkOnce makes the watcher check all files once.
func checkOnce(t *testing.T, watcher *Watcher) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)

		go func() { ended <- watcher.Part().Run(ctx) }()

		synctest.Wait()
		stop()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestServerAndClientFollowTheirFiles(t *testing.T) {
	folder := folder{t, t.TempDir()}
	servers, clients, other := authority(t, "servers"), authority(t, "clients"), authority(t, "others")

	issueServer := func(authority *certificate.Authority) {
		pair, err := authority.IssueServer("broker", "127.0.0.1")
		folder.pair("server", pair, err)
	}
	issueClient := func(authority *certificate.Authority, name string) {
		pair, err := authority.IssueClient(certificate.Client{CommonName: name, Validity: time.Hour})
		folder.pair("client", pair, err)
	}

	issueServer(servers)
	issueClient(clients, "platform")
	folder.write("clients.pem", clients.CertificatePEM())
	folder.write("servers.pem", servers.CertificatePEM())

	watcher, metrics := newWatcher()

	server, err := ServerTLS{
		CertFile: folder.file("server.crt"), KeyFile: folder.file("server.key"), ClientCAFile: folder.file("clients.pem"),
	}.Config(watcher)
	if err != nil {
		t.Fatal(err)
	}

	client, err := ClientTLS{
		CAFile: folder.file("servers.pem"), CertFile: folder.file("client.crt"), KeyFile: folder.file("client.key"),
	}.Transport(watcher, "broker")
	if err != nil {
		t.Fatal(err)
	}

	listener := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.VerifiedChains) > 0 {
			_, _ = w.Write([]byte(r.TLS.VerifiedChains[0][0].Subject.CommonName + " " + r.Proto))
		}
	}))
	listener.TLS, listener.EnableHTTP2 = server, true
	listener.Config.ErrorLog = nil
	listener.StartTLS()
	t.Cleanup(listener.Close)

	// request sends a request on a new connection.
	request := func() (string, error) {
		defer client.CloseIdleConnections()

		response, err := (&http.Client{Transport: client}).Get(listener.URL)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()

		body := make([]byte, 100)
		n, _ := response.Body.Read(body)

		return string(body[:n]), nil
	}

	for _, step := range []struct {
		reason  string
		change  func()
		want    string
		wantErr bool
	}{
		{"the client authenticates with its certificate", func() {}, "platform HTTP/2.0", false},
		{"the client has a new certificate", func() { issueClient(clients, "platform2") }, "platform2 HTTP/2.0", false},
		{"a client certificate of another CA is rejected", func() { issueClient(other, "platform") }, "", true},
		{"the server trusts another client CA", func() { folder.write("clients.pem", other.CertificatePEM()) }, "platform HTTP/2.0", false},
		{"the server's certificate is not signed by the trusted CA", func() { issueServer(other) }, "", true},
		{"the client trusts another server CA", func() { folder.write("servers.pem", other.CertificatePEM()) }, "platform HTTP/2.0", false},
		{"a key that does not match is rejected", func() { folder.write("server.key", []byte("rubbish")) }, "platform HTTP/2.0", false},
	} {
		step.change()
		checkOnce(t, watcher)

		got, err := request()
		if got != step.want || (err != nil) != step.wantErr {
			t.Errorf("%s: want %q, got %q, %v", step.reason, step.want, got, err)
		}
	}

	if problems, err := testutil.GatherAndLint(metrics); err != nil || len(problems) > 0 {
		t.Errorf("metrics: %v, %v", problems, err)
	}

	if count, err := testutil.GatherAndCount(metrics, "environment_broker_certificate_expiry_timestamp_seconds"); count != 2 || err != nil {
		t.Errorf("%d certificates have an expiry, want 2 (%v)", count, err)
	}
}

func TestOldProtocolsAreRejected(t *testing.T) {
	watcher, _ := newWatcher()
	folder := folder{t, t.TempDir()}
	pair, err := authority(t, "servers").IssueServer("broker", "127.0.0.1")
	folder.pair("server", pair, err)

	config, err := ServerTLS{CertFile: folder.file("server.crt"), KeyFile: folder.file("server.key")}.Config(watcher)
	if err != nil {
		t.Fatal(err)
	}

	listener := httptest.NewUnstartedServer(http.NotFoundHandler())
	listener.TLS = config
	listener.StartTLS()
	t.Cleanup(listener.Close)

	for version, want := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		connection, err := tls.Dial("tcp", listener.Listener.Addr().String(), &tls.Config{
			InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: version,
		})
		if (err == nil) != want {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}

		if err == nil {
			_ = connection.Close()
		}
	}
}

func TestServerNameIsChecked(t *testing.T) {
	watcher, _ := newWatcher()
	folder := folder{t, t.TempDir()}
	servers := authority(t, "servers")
	pair, err := servers.IssueServer("broker", "other.example.com")
	folder.pair("server", pair, err)

	server, err := ServerTLS{CertFile: folder.file("server.crt"), KeyFile: folder.file("server.key")}.Config(watcher)
	if err != nil {
		t.Fatal(err)
	}

	client, err := ClientTLS{CAFile: folder.write("servers.pem", servers.CertificatePEM())}.Transport(watcher, "broker")
	if err != nil {
		t.Fatal(err)
	}

	listener := httptest.NewUnstartedServer(http.NotFoundHandler())
	listener.TLS = server
	listener.StartTLS()
	t.Cleanup(listener.Close)

	for name, want := range map[string]bool{"other.example.com": true, "broker.example.com": false, "127.0.0.1": false} {
		config := client.inner.Load().TLSClientConfig.Clone()
		config.ServerName = name

		connection, err := tls.Dial("tcp", listener.Listener.Addr().String(), config)
		if (err == nil) != want {
			t.Errorf("a server for other.example.com is accepted as %s: %v", name, err)
		}

		if err == nil {
			_ = connection.Close()
		}
	}

	defer client.CloseIdleConnections()

	if response, err := (&http.Client{Transport: client}).Get(listener.URL); err == nil {
		_ = response.Body.Close()

		t.Errorf("a server for other.example.com is accepted at the address %s", listener.URL)
	}
}

func TestInvalidFiles(t *testing.T) {
	watcher, _ := newWatcher()
	folder := folder{t, t.TempDir()}
	pair, err := authority(t, "servers").IssueServer("broker", "127.0.0.1")
	folder.pair("server", pair, err)

	cert, key, invalid := folder.file("server.crt"), folder.file("server.key"), folder.write("rubbish", []byte("rubbish"))

	for name, test := range map[string]struct {
		reason string
		files  ServerTLS
		want   string
	}{
		"NoKey":       {"a certificate is useless without its key", ServerTLS{CertFile: cert}, "belong together"},
		"NoCert":      {"a key is useless without its certificate", ServerTLS{KeyFile: key}, "belong together"},
		"ClientsOnly": {"client certificates need TLS", ServerTLS{ClientCAFile: cert}, "require TLS"},
		"Missing":     {"a named file must exist", ServerTLS{CertFile: cert + "x", KeyFile: key}, "no such file"},
		"Rubbish":     {"a certificate file must contain a certificate", ServerTLS{CertFile: invalid, KeyFile: key}, "certificate"},
		"NoAuthority": {"a file of CA certificates must contain a certificate", ServerTLS{CertFile: cert, KeyFile: key, ClientCAFile: invalid}, "CA certificates"},
	} {
		if _, err := test.files.Config(watcher); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %s: want an error with %q, got %v", name, test.reason, test.want, err)
		}
	}

	if config, err := (ServerTLS{}).Config(watcher); config != nil || err != nil {
		t.Errorf("without files: got %v, %v, want plain HTTP", config, err)
	}
}
