package graph_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// order is the smallest valid order in GraphQL.
const order = `{
	runtimeInput: {name: "mine", labels: {stage: "dev", weight: 1.5}},
	clusterConfig: {administrators: ["jane@example.com"], gardenerConfig: {
		name: "c-1234567", kubernetesVersion: "1.33.2", provider: "gcp", targetSecret: "pool", region: "europe-west3",
		machineType: "n2-standard-4", workerCidr: "10.250.0.0/16", autoScalerMin: 1, autoScalerMax: 3, maxSurge: 1,
		maxUnavailable: 0, providerSpecificConfig: {gcpConfig: {zones: ["europe-west3-a"]}}
	}}
}`

const provision = `mutation { result: provisionRuntime(config: ` + order + `) {
	id operation state message runtimeID compassRuntimeID lastError { errMessage reason component }
} }`

func TestProvisionRuntime(t *testing.T) {
	t.Parallel()

	var (
		gotCaller orders.Caller
		gotInput  spec.Runtime
	)

	server := startServer(t, runtimes{
		provision: func(caller orders.Caller, input spec.Runtime) (operation.Status, error) {
			gotCaller, gotInput = caller, input

			return operation.Status{
				ID: "op-1", Kind: operation.KindProvisionNoInstall, State: process.InProgress,
				Message: "Provisioning started", RuntimeID: "rt-1",
			}, nil
		},
	})

	_, got := post(t, server, exchange{query: provision, headers: map[string]string{
		"tenant": "acme", "sub-account": "acme-dev", "Idempotency-Key": "op-1/create",
	}})

	want := `{"data":{"result":{"id":"op-1","operation":"ProvisionNoInstall","state":"InProgress",` +
		`"message":"Provisioning started","runtimeID":"rt-1","compassRuntimeID":null,` +
		`"lastError":{"errMessage":"","reason":"","component":""}}}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lastError must be an object even without a problem: -want +got:\n%s", diff)
	}

	wantCaller := orders.Caller{Tenant: "acme", SubAccount: "acme-dev", IdempotencyKey: "op-1/create"}
	if diff := cmp.Diff(wantCaller, gotCaller); diff != "" {
		t.Errorf("the caller comes from three headers: -want +got:\n%s", diff)
	}

	if name := gotInput.ClusterConfig.GardenerConfig.Name; name != "c-1234567" {
		t.Errorf("the order must reach the service: want name c-1234567, got %s", name)
	}
}

// TestRepeatedOrderIsNotValidated checks that an order with a known key returns its operation, even if it breaks a rule that was
// introduced after the order.
func TestRepeatedOrderIsNotValidated(t *testing.T) {
	t.Parallel()

	server := startServer(t, runtimes{known: map[string]operation.Status{"op-1/create": {
		ID: "op-1", Kind: operation.KindProvisionNoInstall, State: process.Succeeded, RuntimeID: "rt-1",
	}}})
	refused := strings.ReplaceAll(provision, `"c-1234567"`, `"a-name-that-is-far-too-long"`)

	for key, want := range map[string]string{"op-1/create": `"runtimeID":"rt-1"`, "op-2/create": `"error_code":400`} {
		_, got := post(t, server, exchange{query: refused, headers: map[string]string{"tenant": "acme", "Idempotency-Key": key}})
		if !strings.Contains(got, want) {
			t.Errorf("key %s: want %s in %s", key, want, got)
		}
	}
}

func TestRefusedMutations(t *testing.T) {
	t.Parallel()

	const refusal = `{"errors":[{"message":"MESSAGE","path":["result"],` +
		`"extensions":{"error_code":400,"error_component":"provisioner","error_reason":"err_provisioner_bad_request"}}],` +
		`"data":DATA}`

	const headless = "the tenant header is missing: it must contain the account ID"

	upgradeShoot := `mutation { result: upgradeShoot(id: "rt-1", config: {gardenerConfig: {machineType: "big"}}) { id } }`
	upgradeRuntime := `mutation { result: upgradeRuntime(id: "rt-1", config: {kymaConfig: {version: "2", components: []}}) { id } }`

	cases := map[string]struct {
		reason  string
		query   string
		headers map[string]string
		message string
		data    string
	}{
		"NoTenant": {
			reason:  "A mutation without a tenant is rejected before its validation.",
			query:   provision,
			message: headless,
		},
		"DeprovisionNoTenant": {
			reason: "The response to a rejected mutation with a required result has no data.",
			query:  `mutation { result: deprovisionRuntime(id: "rt-1") }`, data: "null",
			message: headless,
		},
		"KeyTooLong": {
			reason:  "The idempotency key has a limit.",
			query:   provision,
			headers: map[string]string{"tenant": "acme", "Idempotency-Key": strings.Repeat("k", 256)},
			message: "the Idempotency-Key header has more than 255 characters",
		},
		"KeyNotPrintable": {
			reason:  "The idempotency key must be printable ASCII.",
			query:   provision,
			headers: map[string]string{"tenant": "acme", "Idempotency-Key": "schlüssel"},
			message: "the Idempotency-Key header contains a character that is not printable ASCII",
		},
		"UpgradeRuntime": {
			reason: "The tenant is required.", query: upgradeRuntime, message: headless,
		},
		"UpgradeShoot": {
			reason: "The tenant is required.", query: upgradeShoot, message: "the tenant header is missing: it must contain the account ID",
		},
		"HibernateRuntime": {
			reason:  "The tenant is required.",
			query:   `mutation { result: hibernateRuntime(id: "rt-1") { id } }`,
			message: "the tenant header is missing: it must contain the account ID",
		},
		"RollBackUpgradeOperation": {
			reason:  "The tenant is required.",
			query:   `mutation { result: rollBackUpgradeOperation(id: "rt-1") { hibernationStatus { hibernated } } }`,
			message: headless,
		},
		"ReconnectRuntimeAgent": {
			reason: "The tenant is required.", data: "null",
			query:   `mutation { result: reconnectRuntimeAgent(id: "rt-1") }`,
			message: "the tenant header is missing: it must contain the account ID",
		},
	}

	// The functions of the fake are nil, so a request that reaches the service would panic.
	server := startServer(t, runtimes{})

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if tc.data == "" {
				tc.data = `{"result":null}`
			}

			status, got := post(t, server, exchange{query: tc.query, headers: tc.headers})
			want := strings.NewReplacer("MESSAGE", tc.message, "DATA", tc.data).Replace(refusal)

			if diff := cmp.Diff(want, got); diff != "" || status != 200 {
				t.Errorf("%s\nstatus %d, answer: -want +got:\n%s", tc.reason, status, diff)
			}
		})
	}
}

func TestUpgradeShoot(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason         string
		administrators string
		want           []string
	}{
		"LeftOut": {reason: "Omitted administrators are nil, so the order does not change them."},
		"Null":    {reason: "Null has the same meaning as an omitted field.", administrators: "administrators: null"},
		"None":    {reason: "An empty list removes all administrators.", administrators: "administrators: []", want: []string{}},
		"One":     {reason: "A list replaces the administrators.", administrators: `administrators: ["jane"]`, want: []string{"jane"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var got spec.Upgrade

			server := startServer(t, runtimes{
				upgradeShoot: func(caller orders.Caller, runtimeID string, upgrade spec.Upgrade) (operation.Status, error) {
					got = upgrade

					return operation.Status{
						ID: caller.IdempotencyKey, RuntimeID: runtimeID, Kind: operation.KindUpgradeShoot,
						State: process.Pending,
					}, nil
				},
			})

			_, answer := post(t, server, exchange{
				query: `mutation { result: upgradeShoot(id: "rt-1", config: { gardenerConfig: { autoScalerMax: 5 } ` + tc.administrators + ` }) {
					id operation state runtimeID lastError { errMessage } } }`,
				headers: map[string]string{"tenant": "acme", "Idempotency-Key": "key"},
			})

			want := `{"data":{"result":{"id":"key","operation":"UpgradeShoot","state":"Pending","runtimeID":"rt-1","lastError":{"errMessage":""}}}}`
			if diff := cmp.Diff(want, answer); diff != "" {
				t.Errorf("%s\nanswer: -want +got:\n%s", tc.reason, diff)
			}

			wantInput := spec.Upgrade{
				GardenerConfig: &spec.ClusterUpgrade{AutoScalerMax: new(5)}, Administrators: tc.want,
			}
			if diff := cmp.Diff(wantInput, got); diff != "" {
				t.Errorf("%s\ninput: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHibernateAndWakeUp(t *testing.T) {
	t.Parallel()

	ordered := func(what string) func(orders.Caller, string) (operation.Status, error) {
		return func(caller orders.Caller, runtimeID string) (operation.Status, error) {
			return operation.Status{ID: what + " " + runtimeID + " of " + caller.Tenant}, nil
		}
	}
	server := startServer(t, runtimes{hibernate: ordered("sleep"), wakeUp: ordered("wake")})

	_, got := post(t, server, asTenant(`mutation { a: hibernateRuntime(id: "rt-1") { id } b: wakeUpRuntime(id: "rt-2") { id } }`))
	if diff := cmp.Diff(`{"data":{"a":{"id":"sleep rt-1 of acme"},"b":{"id":"wake rt-2 of acme"}}}`, got); diff != "" {
		t.Errorf("each mutation must reach its runtime, -want +got:\n%s", diff)
	}
}

func TestUpgradeRuntime(t *testing.T) {
	t.Parallel()

	var got spec.KymaUpgrade

	server := startServer(t, runtimes{
		upgradeRuntime: func(caller orders.Caller, runtimeID string, upgrade spec.KymaUpgrade) (operation.Status, error) {
			got = upgrade

			return operation.Status{
				ID: caller.IdempotencyKey, RuntimeID: runtimeID, Kind: operation.KindUpgrade, State: process.Pending,
			}, nil
		},
	})

	_, answer := post(t, server, exchange{
		query: `mutation { result: upgradeRuntime(id: "rt-1", config: { kymaConfig: { version: "2", components: [null] }, clusterConfig: { kubernetesVersion: "1.35" } }) {
			id operation state runtimeID lastError { errMessage } } }`,
		headers: map[string]string{"tenant": "acme", "Idempotency-Key": "key"},
	})

	want := `{"data":{"result":{"id":"key","operation":"Upgrade","state":"Pending","runtimeID":"rt-1","lastError":{"errMessage":""}}}}`
	if diff := cmp.Diff(want, answer); diff != "" {
		t.Errorf("answer: -want +got:\n%s", diff)
	}

	wantInput := spec.KymaUpgrade{
		KymaConfig: &spec.Kyma{Version: "2", Components: []*spec.Component{nil}}, ClusterConfig: &spec.ClusterVersion{KubernetesVersion: "1.35"},
	}
	if diff := cmp.Diff(wantInput, got); diff != "" {
		t.Errorf("null in a list must reach the validation, which names its field: -want +got:\n%s", diff)
	}
}

func TestRollBackUpgradeOperation(t *testing.T) {
	t.Parallel()

	const query = `mutation { result: rollBackUpgradeOperation(id: "rt-1") {
		lastOperationStatus { id lastError { errMessage } } hibernationStatus { hibernated } } }`

	away := failure.New(failure.Transient, "Gardener is unavailable")

	cases := map[string]struct {
		reason          string
		refused, unread error
		want            string
	}{
		"Accepted": {
			reason: "The response is the runtime with the rollback as its last operation.",
			want:   `{"data":{"result":{"lastOperationStatus":{"id":"op-2","lastError":{"errMessage":""}},"hibernationStatus":{"hibernated":true}}}}`,
		},
		"Refused": {
			reason: "The response to a rejected rollback has no data.", refused: failure.New(failure.Conflict, "nothing to roll back"),
			want: `{"errors":[{"message":"nothing to roll back","path":["result"],"extensions":{"error_code":409,` +
				`"error_component":"provisioner","error_reason":"err_provisioner_internal"}}],"data":{"result":null}}`,
		},
		"Unread": {
			reason: "An accepted rollback is returned even if other fields cannot be read.", unread: away,
			want: `{"errors":[{"message":"Gardener is unavailable","path":["result"],"extensions":{"error_code":503,` +
				`"error_component":"provisioner","error_reason":"err_provisioner_internal"}}],` +
				`"data":{"result":{"lastOperationStatus":{"id":"op-2","lastError":{"errMessage":""}},"hibernationStatus":null}}}`,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			server := startServer(t, runtimes{
				rollBack: func(orders.Caller, string) (operation.Status, error) {
					return operation.Status{ID: "op-2", Kind: operation.KindUpgrade}, tc.refused
				},
				runtimeStatus: func(_ orders.Caller, _ string, want orders.RuntimeFields) (orders.RuntimeStatus, error) {
					if tc.unread != nil || !want.Hibernation {
						return orders.RuntimeStatus{}, tc.unread
					}

					return orders.RuntimeStatus{Hibernation: &orders.Hibernation{Hibernated: true}}, nil
				},
			})

			if _, got := post(t, server, asTenant(query)); got != tc.want {
				t.Errorf("%s: -want +got:\n%s", tc.reason, cmp.Diff(tc.want, got))
			}
		})
	}
}

func TestReconnectRuntimeAgent(t *testing.T) {
	t.Parallel()

	server := startServer(t, runtimes{
		reconnectAgent: func(caller orders.Caller, runtimeID string) (string, error) {
			return caller.Tenant + "/" + runtimeID + "/" + caller.IdempotencyKey, nil
		},
	})

	keyed := asTenant(`mutation { result: reconnectRuntimeAgent(id: "rt-1") }`)
	keyed.headers["Idempotency-Key"] = "k"

	_, got := post(t, server, keyed)
	if diff := cmp.Diff(`{"data":{"result":"acme/rt-1/k"}}`, got); diff != "" {
		t.Errorf("the response must contain the ID of the operation, -want +got:\n%s", diff)
	}
}

func TestDeprovisionRuntime(t *testing.T) {
	t.Parallel()

	server := startServer(t, runtimes{
		deprovision: func(caller orders.Caller, runtimeID string) (string, error) {
			return caller.Tenant + "/" + runtimeID + "/" + caller.IdempotencyKey, nil
		},
	})

	_, got := post(t, server, asTenant(`mutation { a: deprovisionRuntime(id: "rt-1") b: deprovisionRuntime(id: "rt-2") }`))
	if diff := cmp.Diff(`{"data":{"a":"acme/rt-1/","b":"acme/rt-2/"}}`, got); diff != "" {
		t.Errorf("without a key a request may contain several mutations: -want +got:\n%s", diff)
	}

	keyed := asTenant(`mutation { ...two } fragment two on Mutation { a: deprovisionRuntime(id: "rt-1") b: deprovisionRuntime(id: "rt-2") }`)
	keyed.headers["Idempotency-Key"] = "k"

	_, got = post(t, server, keyed)
	if !strings.Contains(got, "the Idempotency-Key header identifies one mutation, but the request has 2") {
		t.Errorf("one key must not identify two mutations: got %s", got)
	}
}
