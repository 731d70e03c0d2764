package provisionerclient_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
)

// ordered returns an instance that can be ordered.
func ordered() environment.Instance {
	return environment.Instance{
		ID: "i1", ShootName: "c-1", PlanID: "plan", Provider: "azure", Region: "westeurope", Platform: "cf",
		Request: environment.Request{
			Context: json.RawMessage(`{"credentials":"hush"}`), Parameters: json.RawMessage(`{"autoScalerMax":7}`),
			Cluster: environment.Cluster{NodesCIDR: "10.250.0.0/16", Zones: []string{"1"}, AutoScalerMax: 7},
		},
	}
}

// TestClientData orders a runtime and changes it, and reads the instance back from the orders.
func TestClientData(t *testing.T) {
	t.Parallel()

	client, got := playProvisioner(t, http.StatusOK, `{"data":{"result":{"id":"operation","runtimeID":"runtime","operation":"Provision","state":"Pending"}}}`)

	sent := func() string {
		config, _ := got.Variables["config"].(map[string]any)
		text, _ := config["clientData"].(string)

		return text
	}

	if _, err := client.OrderRuntime(t.Context(), provisionerclient.Caller{}, ordered(), "secret"); err != nil {
		t.Fatal(err)
	}

	if strings.Contains(sent(), "hush") {
		t.Errorf("the context of the platform is sent: %s", sent())
	}

	want := ordered()
	want.Request.Context = nil

	parsed, err := provisionerclient.ParseClientData(sent())
	if diff := cmp.Diff(want, parsed); diff != "" || err != nil {
		t.Errorf("%v: -want +got\n%s", err, diff)
	}

	changed := ordered()
	changed.PlanID = "other"

	if _, err := client.UpgradeRuntime(t.Context(), provisionerclient.Caller{}, ordered(), changed); err != nil {
		t.Fatal(err)
	}

	if parsed, err := provisionerclient.ParseClientData(sent()); err != nil || parsed.PlanID != "other" {
		t.Errorf("want the changed instance, got %+v, %v", parsed, err)
	}

	large := ordered()
	large.Request.Parameters = json.RawMessage(`{"a":"` + strings.Repeat("x", bounds.ClientData) + `"}`)

	if _, err := client.OrderRuntime(t.Context(), provisionerclient.Caller{}, large, "secret"); err != nil || sent() != "" {
		t.Errorf("an instance that is too large must be ordered without data: %v", err)
	}

	for _, text := range []string{"", "{", `{"id":""}`, `"theirs"`} {
		if _, err := provisionerclient.ParseClientData(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestClientDataIsNotSentToAKymaProvisioner orders from a Provisioner that rejects the unknown field.
func TestClientDataIsNotSentToAKymaProvisioner(t *testing.T) {
	t.Parallel()

	var requests []bool

	client := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		with := strings.Contains(string(body), "clientData")
		requests = append(requests, with)

		if with {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"errors":[{"message":"unknown field","path":["variable","config","clientData"],"extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}],"data":null}`)

			return
		}

		_, _ = io.WriteString(w, `{"data":{"result":{"id":"operation","runtimeID":"runtime","operation":"Provision","state":"Pending"}}}`)
	})

	for range 2 {
		if _, err := client.OrderRuntime(t.Context(), provisionerclient.Caller{}, ordered(), "secret"); err != nil {
			t.Fatal(err)
		}
	}

	if diff := cmp.Diff([]bool{true, false, false}, requests); diff != "" {
		t.Errorf("whether the requests have client data: -want +got\n%s", diff)
	}
}
