package clusteraccess_test

import (
	"bytes"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
)

// hostile returns a cluster with the handler as its API server.
func hostile(t *testing.T, answer http.HandlerFunc) *cluster {
	t.Helper()

	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)

	text, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "c", Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
		Clusters: map[string]*clientcmdapi.Cluster{"c": {
			Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": {Token: "t"}},
	})
	if err != nil {
		t.Fatal(err)
	}

	return &cluster{kubeconfig: text}
}

func TestHostileClusters(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		answer http.HandlerFunc
	}{
		"Endless": {"an endless response is cut off at the size limit", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")

			for r.Context().Err() == nil {
				if _, err := w.Write(bytes.Repeat([]byte(" "), 1<<20)); err != nil {
					return
				}
			}
		}},
		"Silent": {"a call to a silent cluster times out", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := clusteraccess.New(hostile(t, test.answer)).SetAdministrators(t.Context(), "c-hostile", []string{"jane"}, unfenced)
			if !failure.Is(err, failure.Transient) || !strings.Contains(err.Error(), `the administrators of the cluster "c-hostile"`) {
				t.Errorf("%s: got %v", test.reason, err)
			}
		})
	}
}
