package clusterclient_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// TestEndlessResponse checks that the broker stops reading the response of a tenant's cluster at the size limit.
func TestEndlessResponse(t *testing.T) {
	const limit = 32 << 20

	sent := make(chan int, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		count, chunk := 0, bytes.Repeat([]byte(" "), 1<<20)

		for count < 4*limit {
			written, err := w.Write(chunk)
			if count += written; err != nil {
				break
			}
		}

		sent <- count
	}))
	t.Cleanup(server.Close)

	own := instance()
	own.RuntimeID = ""
	own.Request.Cluster.Own = &environment.OwnCluster{Kubeconfig: secret.Stored(written(t, kubeconfig(server)))}

	if err := clusterclient.New(kubeconfigs{}).Allowing(loopback(t)).Probe(t.Context(), own); !failure.Is(err, failure.Transient) {
		t.Errorf("an endless response returned %v, want a transient error", err)
	}

	if count := <-sent; count >= 4*limit {
		t.Errorf("the broker read %d MiB, want to stop soon after %d MiB", count>>20, limit>>20)
	}
}
