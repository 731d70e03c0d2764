package simulated

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
)

const (
	headerTimeout = 10 * time.Second
	// validity of client certificates: longer than any benchmark.
	validity = 24 * time.Hour
)

// kubeconfigText is a kubeconfig like Gardener's, except that all runtimes share one client certificate: signing one for each would load the
// measured machine.
const kubeconfigText = `apiVersion: v1
kind: Config
current-context: runtime
clusters: [{name: runtime, cluster: {server: "https://%s/runtimes/%s", certificate-authority-data: %s}}]
contexts: [{name: runtime, context: {cluster: runtime, user: admin}}]
users: [{name: admin, user: {client-certificate-data: %s, client-key-data: %s}}]
`

// access simulates the API servers of all runtimes on one address.
type access struct {
	listener net.Listener
	server   *http.Server
	// authorityText, certificateText and keyText are shared by all kubeconfigs, base64-encoded.
	authorityText, certificateText, keyText string
}

// newAccess prepares one server, one authority and one client certificate for all runtimes.
func newAccess(listener net.Listener, calls *counters) (*access, error) {
	key, err := certificate.NewKey()
	if err != nil {
		return nil, err
	}

	authority, err := certificate.NewAuthority("simulated runtimes", key)
	if err != nil {
		return nil, err
	}

	own, err := authority.IssueServer("runtimes", "127.0.0.1")
	if err != nil {
		return nil, err
	}

	admin, err := authority.IssueClient(certificate.Client{CommonName: "admin", Organizations: []string{"administrators"}, Validity: validity})
	if err != nil {
		return nil, err
	}

	served, err := tls.X509KeyPair(own.Certificate, own.Key)
	if err != nil {
		return nil, fmt.Errorf("loading the serving certificate: %w", err)
	}

	paths := http.NewServeMux()
	paths.HandleFunc("GET /runtimes/{id}/version", func(w http.ResponseWriter, _ *http.Request) {
		calls.probes.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"major":"1","minor":"35","gitVersion":"v1.35.4"}`) // the client may be gone
	})

	return &access{
		listener: listener,
		server: &http.Server{
			Handler: paths, ReadHeaderTimeout: headerTimeout,
			TLSConfig: &tls.Config{
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{served},
				ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority.Pool(),
			},
			ErrorLog: log.New(io.Discard, "", 0), // killed brokers abort handshakes
		},
		authorityText:   base64.StdEncoding.EncodeToString(authority.CertificatePEM()),
		certificateText: base64.StdEncoding.EncodeToString(admin.Certificate),
		keyText:         base64.StdEncoding.EncodeToString(admin.Key),
	}, nil
}

func (a *access) serve() error { return a.server.ServeTLS(a.listener, "", "") }

// kubeconfig returns an admin kubeconfig of the runtime.
func (a *access) kubeconfig(id string) string {
	return fmt.Sprintf(kubeconfigText, a.listener.Addr(), id, a.authorityText, a.certificateText, a.keyText)
}
