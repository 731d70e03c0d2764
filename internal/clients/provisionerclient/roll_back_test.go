package provisionerclient_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// TestRollBackKyma checks the order. A Kyma Provisioner, which would change only its database, rejects it, and the error names the reason.
func TestRollBackKyma(t *testing.T) {
	t.Parallel()

	instance := ordered()
	instance.RuntimeID = "rt-1"

	client, got := playProvisioner(t, http.StatusOK, `{"data":{"result":{"lastOperationStatus":{"id":"op-1","operation":"Upgrade","state":"InProgress"}}}}`)

	operation, err := client.RollBackKyma(t.Context(), provisionerclient.Caller{Tenant: "acme", IdempotencyKey: "k"}, instance)
	if err != nil || operation.ID != "op-1" || got.Variables["id"] != "rt-1" || got.header.Get("Idempotency-Key") != "k" {
		t.Errorf("got %+v, %v for %+v", operation, err, got)
	}

	if data, _ := got.Variables["clientData"].(string); !strings.Contains(data, instance.ID) {
		t.Errorf("the client data are %q", data)
	}

	for _, empty := range []string{`{"data":{"result":null}}`, `{"data":{"result":{"lastOperationStatus":null}}}`} {
		client, _ := playProvisioner(t, http.StatusOK, empty)
		if _, err := client.RollBackKyma(t.Context(), provisionerclient.Caller{}, instance); !failure.Is(err, failure.Transient) {
			t.Errorf("%s: %v", empty, err)
		}
	}

	client, _ = playProvisioner(t, http.StatusUnprocessableEntity,
		`{"errors":[{"message":"Unknown argument \"clientData\"","extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}],"data":null}`)
	if _, err := client.RollBackKyma(t.Context(), provisionerclient.Caller{}, instance); !failure.Is(err, failure.Permanent) ||
		!errors.Is(err, provisionerclient.ErrNotUnderstood) || !strings.Contains(failure.Of(err).Text, "Kyma Provisioner. Nothing was changed") {
		t.Errorf("a Kyma Provisioner: %v", err)
	}
}
