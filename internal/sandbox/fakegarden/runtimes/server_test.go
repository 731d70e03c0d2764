package runtimes_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus/hooks/test"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/conformance"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/runtimes"
)

const (
	kubernetes = "1.35.4"
	admins     = "gardener.cloud:system:admins"
)

// serve runs a server in a folder until stop is called or the test ends.
func serve(t *testing.T, dir string) (server *runtimes.Server, stop func()) {
	t.Helper()
	log, _ := test.NewNullLogger()
	server, err := runtimes.Listen(t.Context(), runtimes.Options{
		Dir: dir, Log: log, Version: func(context.Context, string) string { return kubernetes },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	stop = func() {
		cancel()
		if err, open := <-done; open && err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { cancel() })
	return server, stop
}

func TestAlone(t *testing.T) {
	server, _ := serve(t, t.TempDir())
	own, other := startRuntime(t, server, "own"), startRuntime(t, server, "other")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	alone := server.ServerFor("own")
	served := make(chan error, 1)
	go func() { served <- alone.ServeTLS(listener, "", "") }()
	defer func() {
		if err := errors.Join(alone.Close(), <-served); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	for _, test := range []struct {
		reason string
		by     runtime
		want   int
	}{
		{"administrators of the runtime are accepted", own, http.StatusOK},
		{"administrators of another runtime are rejected", other, http.StatusUnauthorized},
	} {
		client := own.as(t, test.by.authority, admins, time.Hour)
		response, err := client.Get("https://" + listener.Addr().String() + "/api/v1/namespaces/default")
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != test.want {
			t.Errorf("%s: got %d, want %d, %v", test.reason, response.StatusCode, test.want, err)
		}
		client.CloseIdleConnections()
	}
}

type runtime struct {
	endpoint  gardenlet.Endpoint
	authority *certificate.Authority
}

func startRuntime(t *testing.T, server *runtimes.Server, technicalID string) runtime {
	t.Helper()
	key, err := certificate.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	authority, err := certificate.NewAuthority(technicalID, key)
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := server.Start(t.Context(), technicalID, authority.CertificatePEM())
	if err != nil {
		t.Fatal(err)
	}
	return runtime{endpoint, authority}
}

// as returns an HTTP client with a client certificate that the given CA has signed. Without a CA, the client has no certificate.
func (r runtime) as(t *testing.T, authority *certificate.Authority, organization string, validity time.Duration) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(r.endpoint.CA) {
		t.Fatal("the authority of the endpoint is not a certificate")
	}
	config := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	if authority != nil {
		pair, err := authority.IssueClient(certificate.Client{
			CommonName: "someone", Organizations: []string{organization}, Validity: validity,
		})
		if err != nil {
			t.Fatal(err)
		}
		identity, err := tls.X509KeyPair(pair.Certificate, pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		// Like kubectl, send the certificate even if the server does not list its CA.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &identity, nil }
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// get sends a GET request, decodes the body unless into is nil, and returns the status code.
func get(t *testing.T, client *http.Client, url string, into any) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if into != nil {
		if err := json.NewDecoder(response.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	return response.StatusCode
}

func TestAuthentication(t *testing.T) {
	server, _ := serve(t, t.TempDir())
	own, other := startRuntime(t, server, "own"), startRuntime(t, server, "other")
	tests := []struct {
		reason       string
		authority    *certificate.Authority
		organization string
		validity     time.Duration
		want         int
	}{
		{"administrators are accepted", own.authority, admins, time.Hour, http.StatusOK},
		{"a certificate is required", nil, "", 0, http.StatusUnauthorized},
		{"the certificate of another runtime is rejected", other.authority, admins, time.Hour, http.StatusUnauthorized},
		{"an expired certificate is rejected", own.authority, admins, -time.Second, http.StatusUnauthorized},
		{"users without a role are forbidden", own.authority, "others", time.Hour, http.StatusForbidden},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			client := own.as(t, test.authority, test.organization, test.validity)
			for _, path := range []string{"/version", "/readyz", "/api", "/apis"} {
				if got := get(t, client, own.endpoint.URL+path, nil); got != test.want {
					t.Errorf("%s: got %d, want %d", path, got, test.want)
				}
			}
		})
	}
}

func TestResponses(t *testing.T) {
	server, _ := serve(t, t.TempDir())
	runtime := startRuntime(t, server, "own")
	admin := runtime.as(t, runtime.authority, admins, time.Hour)

	var info version.Info
	get(t, admin, runtime.endpoint.URL+"/version", &info)
	if info.GitVersion != "v1.35.4" || info.Major != "1" || info.Minor != "35" {
		t.Errorf("got version %+v, want 1.35.4", info)
	}
	var status metav1.Status
	if code := get(t, admin, runtime.endpoint.URL+"/api/v1/replicationcontrollers", &status); code != http.StatusNotFound || status.Reason != metav1.StatusReasonNotFound {
		t.Errorf("an unknown resource must be 404, got: %d %+v", code, status)
	}
	status = metav1.Status{}
	get(t, runtime.as(t, nil, "", 0), runtime.endpoint.URL+"/version", &status)
	want := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonUnauthorized, Message: "Unauthorized", Code: http.StatusUnauthorized,
	}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestStoppedRuntimeDoesNotAnswer(t *testing.T) {
	server, _ := serve(t, t.TempDir())
	runtime := startRuntime(t, server, "own")
	admin := runtime.as(t, runtime.authority, admins, time.Hour)
	for range 2 { // Stop is idempotent.
		if err := server.Stop(t.Context(), "own"); err != nil {
			t.Fatal(err)
		}
	}
	if code := get(t, admin, runtime.endpoint.URL+"/version", nil); code != http.StatusNotFound {
		t.Errorf("a stopped runtime must be 404, got: %d", code)
	}
}

func TestKubeconfigsOutliveTheServer(t *testing.T) {
	dir := t.TempDir()
	conformance.KeepPort(t, dir)
	before, stop := serve(t, dir)
	runtime := startRuntime(t, before, "own")
	admin := runtime.as(t, runtime.authority, admins, time.Hour)
	stop()

	after, _ := serve(t, dir)
	endpoint, err := after.Start(t.Context(), "own", runtime.authority.CertificatePEM())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(runtime.endpoint, endpoint); diff != "" {
		t.Errorf("the restart changed the endpoint, -before +after:\n%s", diff)
	}
	if code := get(t, admin, runtime.endpoint.URL+"/version", nil); code != http.StatusOK {
		t.Errorf("a kubeconfig from before the restart must work, got: %d", code)
	}
	for _, name := range []string{"ca.key", "ca.crt", "address"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("file %s must have mode 600: %v %v", name, info, err)
		}
	}
}

func TestAddressInUse(t *testing.T) {
	dir := t.TempDir()
	conformance.KeepPort(t, dir)
	before, stop := serve(t, dir)
	address, err := url.Parse(startRuntime(t, before, "own").endpoint.URL)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	otherListener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer otherListener.Close()

	after, _ := serve(t, dir)
	runtime := startRuntime(t, after, "own")
	if code := get(t, runtime.as(t, runtime.authority, admins, time.Hour), runtime.endpoint.URL+"/readyz", nil); code != http.StatusOK {
		t.Errorf("a runtime must be ready at the new address, got: %d", code)
	}
}

func TestStartNeedsAnAuthority(t *testing.T) {
	server, _ := serve(t, t.TempDir())
	if _, err := server.Start(t.Context(), "own", []byte("nothing")); err == nil {
		t.Error("starting a runtime without a client authority did not fail")
	}
}
