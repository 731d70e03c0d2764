package provisioner

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
)

// kubeconfigText has placeholders for the server's URL and its base64-encoded CA certificate. The simulated API server ignores the
// token.
const kubeconfigText = `apiVersion: v1
kind: Config
current-context: runtime
clusters: [{name: runtime, cluster: {server: %q, certificate-authority-data: %s}}]
contexts: [{name: runtime, context: {cluster: runtime, user: admin}}]
users: [{name: admin, user: {token: kyma}}]
`

// newAccess simulates the API servers of all runtimes. It starts one server that returns its version to every request, because
// the broker's probe requests only the version. The caller must close the server.
func newAccess() *httptest.Server {
	return httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"major":"1","minor":"35","gitVersion":"v1.35.4"}`)
	}))
}

// kubeconfig returns a kubeconfig for the simulated API server.
func (p *Provisioner) kubeconfig() string {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.access.Certificate().Raw})

	return fmt.Sprintf(kubeconfigText, p.access.URL, base64.StdEncoding.EncodeToString(authority))
}
