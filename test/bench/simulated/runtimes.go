package simulated

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
)

// validity is the lifetime of the client certificate. No benchmark runs longer than this.
const validity = 24 * time.Hour

// kubeconfigText is a kubeconfig like Gardener's, except that all runtimes share one client certificate. Signing a certificate
// for each runtime would distort the measurement.
const kubeconfigText = `apiVersion: v1
kind: Config
current-context: runtime
clusters: [{name: runtime, cluster: {server: "%s/runtimes/%s", certificate-authority-data: %s}}]
contexts: [{name: runtime, context: {cluster: runtime, user: admin}}]
users: [{name: admin, user: {client-certificate-data: %s, client-key-data: %s}}]
`

// startRuntimes runs one server as the API server of all runtimes, until the test ends. The server accepts Secrets that clients
// write, but does not store them. It calls probed for every request. startRuntimes returns a function that creates the kubeconfig
// of a runtime.
func startRuntimes(tb testing.TB, probed func()) (kubeconfig func(id string) string) {
	tb.Helper()

	check := func(err error) {
		tb.Helper()

		if err != nil {
			tb.Fatalf("preparing the certificates of the runtimes: %v", err)
		}
	}

	key, err := certificate.NewKey()
	check(err)
	authority, err := certificate.NewAuthority("simulated runtimes", key)
	check(err)
	own, err := authority.IssueServer("runtimes", "127.0.0.1")
	check(err)
	admin, err := authority.IssueClient(certificate.Client{CommonName: "admin", Organizations: []string{"administrators"}, Validity: validity})
	check(err)
	served, err := tls.X509KeyPair(own.Certificate, own.Key)
	check(err)

	paths := http.NewServeMux()
	respond := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			probed()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body) // The client may have disconnected.
		}
	}
	paths.HandleFunc("GET /runtimes/{id}/version", respond(http.StatusOK, `{"major":"1","minor":"35","gitVersion":"v1.35.4"}`))
	paths.HandleFunc("POST /runtimes/{id}/api/v1/namespaces", respond(http.StatusCreated, `{"kind":"Namespace","apiVersion":"v1"}`))
	paths.HandleFunc("GET /runtimes/{id}/api/v1/namespaces/{namespace}/secrets/{name}",
		respond(http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
	paths.HandleFunc("PATCH /runtimes/{id}/api/v1/namespaces/{namespace}/secrets/{name}", respond(http.StatusOK, `{"kind":"Secret","apiVersion":"v1"}`))

	server := httptest.NewUnstartedServer(paths)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // A killed broker aborts handshakes.
	server.TLS = &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{served},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority.Pool(),
	}
	server.StartTLS()
	tb.Cleanup(server.Close)

	encode := base64.StdEncoding.EncodeToString
	authorityText, certificateText, keyText := encode(authority.CertificatePEM()), encode(admin.Certificate), encode(admin.Key)

	return func(id string) string {
		return fmt.Sprintf(kubeconfigText, server.URL, id, authorityText, certificateText, keyText)
	}
}
