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

// kubeconfigText is a kubeconfig as Gardener makes them: every one has a client certificate of its own.
const kubeconfigText = `apiVersion: v1
kind: Config
current-context: runtime
clusters: [{name: runtime, cluster: {server: "https://%s/runtimes/%s", certificate-authority-data: %s}}]
contexts: [{name: runtime, context: {cluster: runtime, user: admin}}]
users: [{name: admin, user: {client-certificate-data: %s, client-key-data: %s}}]
`

// access plays the API servers of all runtimes on one address.
type access struct {
	authority *authority
	listener  net.Listener
	server    *http.Server
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

	paths := http.NewServeMux()
	paths.HandleFunc("GET /runtimes/{id}/version", func(w http.ResponseWriter, _ *http.Request) {
		calls.probes.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"major":"1","minor":"35","gitVersion":"v1.35.4"}`) // a client that is gone hears nothing
	})

	return &access{authority: authority, listener: listener, server: &http.Server{
		Handler: paths, TLSConfig: authority.serving(own), ReadHeaderTimeout: headerTimeout,
		ErrorLog: log.New(io.Discard, "", 0), // brokers that are killed break off
	}}, nil
}

func (a *access) serve() error { return a.server.ServeTLS(a.listener, "", "") }

// kubeconfig makes a kubeconfig for an administrator of the runtime.
func (a *access) kubeconfig(id string) (string, error) {
	admin, err := a.authority.issue("admin", x509.ExtKeyUsageClientAuth)
	if err != nil {
		return "", err
	}

	key, err := keyPEM(admin.key)
	if err != nil {
		return "", err
	}

	return fmt.Sprintf(kubeconfigText, a.listener.Addr(), id, base64.StdEncoding.EncodeToString(certificatePEM(a.authority.certificate.Raw)),
		base64.StdEncoding.EncodeToString(certificatePEM(admin.certificate)), base64.StdEncoding.EncodeToString(key)), nil
}
