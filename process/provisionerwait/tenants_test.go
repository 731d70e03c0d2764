package provisionerwait_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// TestTenantsNeverShareARequest polls operations of random tenants at the same time, over HTTP. The ID of an operation starts with its
// tenant; the server compares it with the tenant of the request. A Kyma Provisioner would make that tenant the owner of the runtime.
func TestTenantsNeverShareARequest(t *testing.T) {
	const (
		pollers = 64
		polls   = 40
	)

	var requests, operations atomic.Int64

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sent struct{ Variables map[string]string }

		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}

		requests.Add(1)
		operations.Add(int64(len(sent.Variables)))

		data := map[string]any{}

		for alias, id := range sent.Variables {
			if tenant, _, _ := strings.Cut(id, "/"); tenant != r.Header.Get("Tenant") {
				t.Errorf("a request of %s asks for the operation %s", r.Header.Get("Tenant"), id)
			}

			if alias == "id" {
				alias = "result" // the request for one operation
			}

			data[alias] = map[string]any{"id": id, "operation": "Provision", "state": "InProgress"}
		}

		if err := json.NewEncoder(w).Encode(map[string]any{"data": data}); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()

	client, err := provisionerclient.New(provisionerclient.Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}

	seed := rand.Uint64()
	t.Logf("seed %d", seed)

	poller := provisionerwait.NewPoller(client, 1_000_000)

	var group sync.WaitGroup

	for number := range pollers {
		random := rand.New(rand.NewPCG(seed, uint64(number)))

		group.Go(func() {
			for range polls {
				// Sometimes several goroutines poll the same operation, as happens after a replica has lost a lease.
				tenant := fmt.Sprint("tenant-", random.IntN(7))
				id := fmt.Sprint(tenant, "/", random.IntN(pollers))

				status, wait, err := poller.Poll(t.Context(), tenant, id)
				if err != nil || wait == 0 && status.ID != id {
					t.Errorf("polling %s: got %+v, %v", id, status, err)
				}

				if random.IntN(2) == 0 {
					poller.Expect(tenant, id, time.Duration(random.Int64N(int64(time.Second))))
				}
			}
		})
	}

	group.Wait()

	if requests.Load() == 0 || operations.Load() <= requests.Load() {
		t.Errorf("%d requests asked for %d operations, want some for several", requests.Load(), operations.Load())
	}
}
