package provisionerclient_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/failure"
)

const operationAnswer = `{"data": {"result": {"id": "op-1", "operation": "Provision", "state": "Exploding", "message": "m",
	"runtimeID": "rt-1", "lastError": {"errMessage": "e", "reason": "r", "component": "c"}, "unknown": 1}}}`

func TestNew(t *testing.T) {
	t.Parallel()

	for _, address := range []string{"", "127.0.0.1:3000", "ftp://host/graphql", "http:///graphql", "http://user:hunter2@ho st/"} {
		_, err := provisionerclient.New(provisionerclient.Options{URL: address})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("address %q: got %v, want an error that does not quote it", address, err)
		}
	}
}

func TestProvisionRuntime(t *testing.T) {
	t.Parallel()

	client, got := playProvisioner(t, http.StatusOK, operationAnswer)

	operation, err := client.ProvisionRuntime(t.Context(),
		provisionerclient.Caller{Tenant: "acme", SubAccount: "acme-dev", IdempotencyKey: "k"},
		&wire.ProvisionRuntimeInput{
			RuntimeInput: &wire.RuntimeInput{Name: "mine", Labels: map[string]any{"size": 12345678901234567}},
			ClusterConfig: &wire.ClusterConfigInput{GardenerConfig: &wire.GardenerConfigInput{
				ProviderSpecificConfig: &wire.ProviderSpecificInput{AwsConfig: &wire.AWSProviderConfigInput{
					AwsZones: []*wire.AWSZoneInput{{Name: "a"}},
				}},
			}},
		})
	if err != nil {
		t.Fatal(err)
	}

	want := provisionerclient.Operation{
		ID: "op-1", RuntimeID: "rt-1", Type: provisionerclient.Type(wire.OperationTypeProvision), State: "Exploding", Message: "m",
		LastError: provisionerclient.LastError{Message: "e", Reason: "r", Component: "c"},
	}
	if diff := cmp.Diff(want, operation); diff != "" {
		t.Errorf("an operation in an unknown state: -want +got:\n%s", diff)
	}

	wantVariables := map[string]any{"config": map[string]any{
		"runtimeInput": map[string]any{"name": "mine", "labels": map[string]any{"size": 12345678901234567.}},
		"clusterConfig": map[string]any{"gardenerConfig": map[string]any{
			"name": "", "kubernetesVersion": "", "provider": "", "targetSecret": "", "region": "", "machineType": "",
			"workerCidr": "", "autoScalerMin": 0., "autoScalerMax": 0., "maxSurge": 0., "maxUnavailable": 0.,
			"providerSpecificConfig": map[string]any{"awsConfig": map[string]any{
				"vpcCidr":  "",
				"awsZones": []any{map[string]any{"name": "a", "publicCidr": "", "internalCidr": "", "workerCidr": ""}},
			}},
		}},
	}}
	if diff := cmp.Diff(wantVariables, got.Variables); diff != "" {
		t.Errorf("absent fields must not be sent, because the Kyma Provisioner may not know them: -want +got:\n%s", diff)
	}

	if !strings.Contains(got.Query, "result: provisionRuntime") {
		t.Errorf("the call lacks the alias result: got %s", got.Query)
	}

	for name, want := range map[string]string{"tenant": "acme", "sub-account": "acme-dev", "Idempotency-Key": "k"} {
		if value := got.header.Get(name); value != want {
			t.Errorf("header %s: want %s, got %s", name, want, value)
		}
	}
}

func TestUpgradeShoot(t *testing.T) {
	t.Parallel()

	client, got := playProvisioner(t, http.StatusOK, operationAnswer)

	operation, err := client.UpgradeShoot(t.Context(), provisionerclient.Caller{Tenant: "acme", IdempotencyKey: "k"}, "rt-1",
		&wire.UpgradeShootInput{GardenerConfig: &wire.GardenerUpgradeInput{AutoScalerMax: new(5)}})
	if err != nil || operation.ID != "op-1" {
		t.Fatalf("operation: got %+v, %v", operation, err)
	}

	want := map[string]any{"id": "rt-1", "config": map[string]any{"gardenerConfig": map[string]any{"autoScalerMax": 5.}}}
	if diff := cmp.Diff(want, got.Variables); diff != "" || got.header.Get("Idempotency-Key") != "k" {
		t.Errorf("absent fields must not be sent, the idempotency key must: -want +got:\n%s", diff)
	}

	client, _ = playProvisioner(t, http.StatusOK, `{"data": {"result": null}}`)
	if _, err := client.UpgradeShoot(t.Context(), provisionerclient.Caller{}, "rt-1", &wire.UpgradeShootInput{}); !failure.Is(err, failure.Transient) {
		t.Errorf("a response without an operation is not retried: got %v", err)
	}
}

func TestOptionalHeaders(t *testing.T) {
	t.Parallel()

	client, got := playProvisioner(t, http.StatusOK, `{"data": {"result": "op-1"}}`)

	if _, err := client.DeprovisionRuntime(t.Context(), provisionerclient.Caller{Tenant: "acme"}, "rt-1"); err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"Sub-Account", "Idempotency-Key", "Original-Tenant", "Original-Sub-Account"} {
		if values, sent := got.header[name]; sent {
			t.Errorf("header %s is sent without a value: got %q", name, values)
		}
	}
}

// TestOwnerThatCannotBeALabel checks the headers for IDs that are not valid Kubernetes labels. Tenant and Sub-Account must
// contain hashes of the IDs, because the Kyma Provisioner labels the Shoot with their values and Gardener would reject the
// IDs.
func TestOwnerThatCannotBeALabel(t *testing.T) {
	t.Parallel()

	client, got := playProvisioner(t, http.StatusOK, `{"data": {"result": "op-1"}}`)

	if _, err := client.DeprovisionRuntime(t.Context(), provisionerclient.Caller{Tenant: "-", SubAccount: "a b"}, "rt-1"); err != nil {
		t.Fatal(err)
	}

	for name, want := range map[string]string{
		"Tenant": "sha256-3973e022e93220f9212c18d0d0c543ae", "Sub-Account": "sha256-c8687a08aa5d6ed2044328fa6a697ab8",
		"Original-Tenant": "-", "Original-Sub-Account": "a+b",
	} {
		if value := got.header.Get(name); value != want {
			t.Errorf("header %s: got %q, want %q", name, value, want)
		}
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()

	operation := strings.TrimSuffix(strings.TrimPrefix(operationAnswer, `{"data": {"result": `), `}}`)
	client, _ := playProvisioner(t, http.StatusOK, operationAnswer)

	byID, err := client.OperationStatus(t.Context(), "acme", "op-1")
	if err != nil {
		t.Fatal(err)
	}

	client, _ = playProvisioner(t, http.StatusOK, `{"data": {"result": {"lastOperationStatus": `+operation+`}}}`)

	last, err := client.RuntimeStatus(t.Context(), "acme", "rt-1")
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(byID, last); diff != "" || last.ID != "op-1" {
		t.Errorf("lookups by operation ID and by runtime ID differ: -want +got:\n%s", diff)
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()

	client, got := playProvisioner(t, http.StatusOK,
		`{"data": {"result": {"runtimeConfiguration": {"clusterConfig": {"name": "c-1", "seed": null, "region": "westeurope"}}}}}`)

	cluster, err := client.Cluster(t.Context(), "acme", "rt-1")
	if diff := cmp.Diff(provisionerclient.Cluster{Name: "c-1", Region: "westeurope"}, cluster); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}

	if got.header.Get("tenant") != "acme" || got.Variables["id"] != "rt-1" {
		t.Errorf("asked for %v of tenant %s", got.Variables, got.header.Get("tenant"))
	}

	client, _ = playProvisioner(t, http.StatusOK, `{"data": {"result": {"runtimeConfiguration": {"clusterConfig": null}}}}`)
	if _, err := client.Cluster(t.Context(), "acme", "rt-1"); !failure.Is(err, failure.Transient) {
		t.Errorf("a missing cluster: %v", err)
	}
}

func TestKubeconfig(t *testing.T) {
	t.Parallel()

	client, _ := playProvisioner(t, http.StatusOK, `{"data": {"result": {"runtimeConfiguration": {"kubeconfig": "hunter2"}}}}`)

	kubeconfig, err := client.Kubeconfig(t.Context(), "acme", "rt-1")
	if err != nil || kubeconfig.Reveal() != "hunter2" {
		t.Errorf("want hunter2, got %q, %v", kubeconfig.Reveal(), err)
	}

	client, _ = playProvisioner(t, http.StatusOK, `{"data": {"result": {"runtimeConfiguration": {"kubeconfig": null}}}}`)

	_, err = client.Kubeconfig(t.Context(), "acme", "rt-1")
	if !failure.Is(err, failure.Waiting) {
		t.Errorf("a missing cluster is not retried: got %v", err)
	}

	client, _ = playProvisioner(t, http.StatusOK, `{"data": {"result": {"runtimeConfiguration": {"kubeconfig": "hunter2", "`)

	_, err = client.Kubeconfig(t.Context(), "acme", "rt-1")
	if !failure.Is(err, failure.Transient) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a truncated response is not retried, or is quoted: got %v", err)
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()

	const answer = `{"data": {"result": {"cursor": "8", "operations": [
		{"id": "op-1", "runtimeID": "rt-1", "operation": "Deprovision", "state": "Succeeded"}, null]}}}`

	cases := map[string]struct {
		reason string
		after  string
		wait   time.Duration
		want   map[string]any
	}{
		"First": {
			reason: "The first request has no cursor.",
			want:   map[string]any{"waitSeconds": 0.},
		},
		"Next": {
			reason: "Waits are rounded to seconds.",
			after:  "7", wait: 1600 * time.Millisecond,
			want: map[string]any{"after": "7", "waitSeconds": 2.},
		},
		"TooLong": {
			reason: "Waits are limited to half a minute, the maximum of the Provisioner.",
			after:  "7", wait: time.Hour,
			want: map[string]any{"after": "7", "waitSeconds": 30.},
		},
		"Negative": {
			reason: "A negative wait becomes zero.",
			after:  "7", wait: -time.Hour,
			want: map[string]any{"after": "7", "waitSeconds": 0.},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			client, got := playProvisioner(t, http.StatusOK, answer)

			changes, err := client.Changes(t.Context(), tc.after, tc.wait)
			if err != nil {
				t.Fatal(err)
			}

			want := provisionerclient.Changes{Cursor: "8", Operations: []provisionerclient.ChangedOperation{{
				OperationID: "op-1", RuntimeID: "rt-1", Type: provisionerclient.Type(wire.OperationTypeDeprovision), State: provisionerclient.StateSucceeded,
			}}}
			if diff := cmp.Diff(want, changes); diff != "" {
				t.Errorf("%s\nChanges(): -want +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.want, got.Variables); diff != "" {
				t.Errorf("%s\nvariables: -want +got:\n%s", tc.reason, diff)
			}

			if _, sent := got.header["Tenant"]; sent {
				t.Errorf("%s\nthe feed request has a tenant", tc.reason)
			}
		})
	}
}
