package simulated

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

const headerTimeout = 10 * time.Second

// kubeconfigText is a kubeconfig as Gardener makes them, but for the client certificate, which all of them share: signing one for each would be
// work of the machine that is measured.
const kubeconfigText = `apiVersion: v1
kind: Config
current-context: runtime
clusters: [{name: runtime, cluster: {server: "https://%s/runtimes/%s", certificate-authority-data: %s}}]
contexts: [{name: runtime, context: {cluster: runtime, user: admin}}]
users: [{name: admin, user: {client-certificate-data: %s, client-key-data: %s}}]
`

// access plays the API servers of all runtimes on one address.
type access struct {
	listener net.Listener
	server   *http.Server
	// authorityText, certificateText and keyText are what all kubeconfigs have.
	authorityText, certificateText, keyText string
}

func newAccess(listener net.Listener, calls *counters) (*access, error) {
	authority, err := newAuthority()
	if err != nil {
		return nil, err
	}

	own, err := authority.issue("runtimes", x509.ExtKeyUsageServerAuth)
	if err != nil {
		return nil, err
	}

	admin, err := authority.issue("admin", x509.ExtKeyUsageClientAuth)
	if err != nil {
		return nil, err
	}

	key, err := keyPEM(admin.key)
	if err != nil {
		return nil, err
	}

	paths := http.NewServeMux()
	paths.HandleFunc("GET /runtimes/{id}/version", func(w http.ResponseWriter, _ *http.Request) {
		calls.probes.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"major":"1","minor":"35","gitVersion":"v1.35.4"}`) // a client that is gone hears nothing
	})

	return &access{
		listener: listener,
		server: &http.Server{
			Handler: paths, TLSConfig: authority.serving(own), ReadHeaderTimeout: headerTimeout,
			ErrorLog: log.New(io.Discard, "", 0), // brokers that are killed break off
		},
		authorityText:   base64.StdEncoding.EncodeToString(certificatePEM(authority.certificate.Raw)),
		certificateText: base64.StdEncoding.EncodeToString(certificatePEM(admin.certificate)),
		keyText:         base64.StdEncoding.EncodeToString(key),
	}, nil
}

func (a *access) serve() error { return a.server.ServeTLS(a.listener, "", "") }

// kubeconfig is one for an administrator of the runtime.
func (a *access) kubeconfig(id string) string {
	return fmt.Sprintf(kubeconfigText, a.listener.Addr(), id, a.authorityText, a.certificateText, a.keyText)
}
