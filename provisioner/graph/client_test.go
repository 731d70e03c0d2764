package graph_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/labels/tenancy"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// TestClient calls this server with the broker's client, to check that both use the same schema.
func TestClient(t *testing.T) {
	t.Parallel()

	status := operation.Status{
		ID: "op-1", RuntimeID: "rt-1", Kind: operation.KindProvisionNoInstall,
		State: process.Failed, Message: "m",
		Problem: process.Problem{Message: "quota", Reason: "ERR_INFRA_QUOTA_EXCEEDED", Component: "gardener"},
	}

	var (
		gotCallers []orders.Caller
		gotInput   spec.Runtime
		gotWant    []orders.RuntimeFields
	)

	client := clientOf(t, runtimes{
		provision: func(caller orders.Caller, input spec.Runtime) (operation.Status, error) {
			gotCallers, gotInput = append(gotCallers, caller), input

			return status, nil
		},
		deprovision: func(caller orders.Caller, runtimeID string) (string, error) {
			gotCallers = append(gotCallers, caller)

			return "op-2-" + runtimeID, nil
		},
		operationStatus: func(orders.Caller, string) (operation.Status, error) { return status, nil },
		runtimeStatus: func(_ orders.Caller, _ string, want orders.RuntimeFields) (orders.RuntimeStatus, error) {
			gotWant = append(gotWant, want)

			return orders.RuntimeStatus{
				Operation: &status, Kubeconfig: new("kind: Config"),
			}, nil
		},
		changes: func(_ context.Context, after string, wait time.Duration) (string, []orders.Change, error) {
			return after + "+" + wait.String(), []orders.Change{{
				ID: "op-1", RuntimeID: "rt-1", Kind: operation.KindDeprovision, State: process.Pending,
			}}, nil
		},
	})

	ctx := t.Context()
	caller := provisionerclient.Caller{Tenant: "acme", SubAccount: "acme-dev", IdempotencyKey: "op-1/create"}
	want := provisionerclient.Operation{
		ID: "op-1", RuntimeID: "rt-1", Type: "ProvisionNoInstall", State: "Failed", Message: "m",
		LastError: provisionerclient.LastError{Message: "quota", Reason: "ERR_INFRA_QUOTA_EXCEEDED", Component: "gardener"},
	}

	provisioned, err := client.ProvisionRuntime(ctx, caller, clientOrder())
	assertAnswer(t, "ProvisionRuntime", want, provisioned, err)

	operationID, err := client.DeprovisionRuntime(ctx, caller, "rt-1")
	assertAnswer(t, "DeprovisionRuntime", "op-2-rt-1", operationID, err)

	operation, err := client.OperationStatus(ctx, "acme", "op-1")
	assertAnswer(t, "OperationStatus", want, operation, err)

	last, err := client.RuntimeStatus(ctx, "acme", "rt-1")
	assertAnswer(t, "RuntimeStatus", want, last, err)

	kubeconfig, err := client.Kubeconfig(ctx, "acme", "rt-1")
	assertAnswer(t, "Kubeconfig", "kind: Config", kubeconfig.Reveal(), err)

	changes, err := client.Changes(ctx, "7", 3*time.Second)
	assertAnswer(t, "Changes", provisionerclient.Changes{Cursor: "7+3s", Operations: []provisionerclient.ChangedOperation{
		{OperationID: "op-1", RuntimeID: "rt-1", Type: "Deprovision", State: "Pending"},
	}}, changes, err)

	wantCaller := orders.Caller{Tenant: "acme", SubAccount: "acme-dev", IdempotencyKey: "op-1/create"}
	assertAnswer(t, "callers", []orders.Caller{wantCaller, wantCaller}, gotCallers, nil)
	assertAnswer(t, "wanted fields", []orders.RuntimeFields{{}, {Kubeconfig: true}}, gotWant, nil)
	assertAnswer(t, "order", &spec.AWS{
		VpcCIDR: "10.250.0.0/16",
		AWSZones: []*spec.AWSZone{{
			Name: "eu-central-1a", WorkerCIDR: "10.250.0.0/19", PublicCIDR: "10.250.32.0/20", InternalCIDR: "10.250.48.0/20",
		}},
	}, gotInput.ClusterConfig.GardenerConfig.ProviderSpecificConfig.AWSConfig, nil)
}

// TestOwnersThatCannotBeLabels checks that our client and other brokers access the same runtimes if the ID of a tenant is not a
// valid label value: our client sends the label of the tenant, other brokers send its ID.
func TestOwnersThatCannotBeLabels(t *testing.T) {
	t.Parallel()

	var got []orders.Caller

	fake := runtimes{deprovision: func(caller orders.Caller, _ string) (string, error) {
		got = append(got, caller)

		return "op-1", nil
	}}

	long := strings.Repeat("ü", 64)
	want := orders.Caller{
		Tenant: "sha256-3973e022e93220f9212c18d0d0c543ae", SubAccount: tenancy.Label(long), OriginalTenant: "-", OriginalSubAccount: long,
	}

	_, err := clientOf(t, fake).DeprovisionRuntime(t.Context(), provisionerclient.Caller{Tenant: "-", SubAccount: long}, "rt-1")
	if err != nil {
		t.Fatal(err)
	}

	post(t, startServer(t, fake), exchange{
		query: `mutation { deprovisionRuntime(id: "rt-1") }`, headers: map[string]string{"tenant": "-", "sub-account": long},
	})

	if diff := cmp.Diff([]orders.Caller{want, want}, got); diff != "" {
		t.Errorf("callers: -want +got:\n%s", diff)
	}
}

func TestClientErrors(t *testing.T) {
	t.Parallel()

	const seeTimeline = "; operators can find the details in the timeline of the operation"

	cases := map[string]struct {
		reason string
		err    error
		want   *failure.Error
	}{
		"NotFound": {
			reason: "The broker must distinguish a missing operation from a rejected request.",
			err: failure.New(failure.NotFound, "no operation op-1").
				WithReason(failure.ReasonNotFound, failure.ComponentProvisionerStorage),
			want: &failure.Error{
				Kind: failure.NotFound, Reason: failure.ReasonNotFound, Component: failure.ComponentProvisionerStorage,
				Text:   "the Provisioner could not report the state of the operation: the Provisioner's database has no such object" + seeTimeline,
				Detail: "no operation op-1",
			},
		},
		"Invalid": {
			reason: "A rejected request is not retried.",
			err:    failure.New(failure.Invalid, "no such region").WithReason("r", "gardener"),
			want: &failure.Error{
				Kind: failure.Permanent, Reason: "r", Component: "gardener",
				Text: "the Provisioner refused to report the state of the operation" + seeTimeline, Detail: "no such region",
			},
		},
		"Transient": {
			reason: "A transient error stays transient.",
			err:    failure.New(failure.Transient, "no database").WithReason("r", "c"),
			want: &failure.Error{
				Kind: failure.Transient, Reason: "r", Component: "c",
				Text: "the Provisioner could not report the state of the operation" + seeTimeline, Detail: "no database",
			},
		},
		"Internal": {
			reason: "An internal error is transient for the broker, and its text stays in the Provisioner's log.",
			err:    errors.New("hunter2"),
			want: &failure.Error{
				Kind: failure.Transient, Reason: "err_provisioner_internal", Component: "provisioner",
				Text: "the Provisioner could not report the state of the operation" + seeTimeline, Detail: "internal error",
			},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			client := clientOf(t, runtimes{operationStatus: func(orders.Caller, string) (operation.Status, error) {
				return operation.Status{}, tc.err
			}})

			_, err := client.OperationStatus(t.Context(), "acme", "op-1")
			if diff := cmp.Diff(tc.want, failure.Of(err)); diff != "" {
				t.Errorf("%s\nerror: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestClientLeavesFeed cancels a request for changes while the server is waiting for a change. The client must get the cause of
// the cancellation, and the server must stop waiting.
func TestClientLeavesFeed(t *testing.T) {
	t.Parallel()

	waiting, left := make(chan struct{}), make(chan struct{})
	client := clientOf(t, runtimes{
		changes: func(ctx context.Context, _ string, _ time.Duration) (string, []orders.Change, error) {
			close(waiting)
			<-ctx.Done()
			close(left)

			return "", nil, ctx.Err()
		},
	})

	ctx, cancel := context.WithCancel(t.Context())

	go func() {
		<-waiting
		cancel()
	}()

	_, err := client.Changes(ctx, "7", time.Minute)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled client must get the cause of its cancellation: got %v", err)
	}

	<-left
}

func assertAnswer(t *testing.T, what string, want, got any, err error) {
	t.Helper()

	if err != nil {
		t.Errorf("%s: %v", what, err)
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want +got:\n%s", what, diff)
	}
}

func clientOf(t *testing.T, runtimes graph.Service) *provisionerclient.Client {
	t.Helper()

	client, err := provisionerclient.New(provisionerclient.Options{URL: startServer(t, runtimes).URL + "/graphql"})
	if err != nil {
		t.Fatal(err)
	}

	return client
}

func clientOrder() *wire.ProvisionRuntimeInput {
	return &wire.ProvisionRuntimeInput{
		RuntimeInput: &wire.RuntimeInput{Name: "mine", Labels: map[string]any{"a": "b"}},
		ClusterConfig: &wire.ClusterConfigInput{
			Administrators: []string{"jane@example.com"},
			GardenerConfig: &wire.GardenerConfigInput{
				Name: "c-1234567", KubernetesVersion: "1.33.2", Provider: "aws", TargetSecret: "pool", Region: "eu-central-1",
				MachineType: "m6i.large", WorkerCidr: "10.250.0.0/16", AutoScalerMin: 1, AutoScalerMax: 3, MaxSurge: 1,
				ProviderSpecificConfig: &wire.ProviderSpecificInput{AwsConfig: &wire.AWSProviderConfigInput{
					VpcCidr: "10.250.0.0/16",
					AwsZones: []*wire.AWSZoneInput{{
						Name: "eu-central-1a", WorkerCidr: "10.250.0.0/19", PublicCidr: "10.250.32.0/20", InternalCidr: "10.250.48.0/20",
					}},
				}},
			},
		},
	}
}
