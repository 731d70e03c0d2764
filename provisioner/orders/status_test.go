package orders_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/agent"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

var allFields = orders.RuntimeFields{Kubeconfig: true, ConnectionStatus: true, Hibernation: true}

func (f *fixture) setState(operationID string, state process.State, problem process.Problem) {
	f.Helper()

	err := f.db.InTx(f.Context(), func(tx storage.Tx) error {
		_, err := storage.Exec(f.Context(), tx, `UPDATE operations SET state = ?, stage = 'CreatingCluster', problem_message = ?,
			problem_reason = ?, problem_component = ? WHERE id = ?`, state, problem.Message, problem.Reason, problem.Component, operationID)

		return err
	})
	if err != nil {
		f.Fatal(err)
	}
}

func TestPublicStates(t *testing.T) {
	quota := process.Problem{Message: "no quota", Reason: "ERR_QUOTA", Component: "gardener"}
	canceled := "canceled by an operator or because the runtime is being deprovisioned"

	cases := map[string]struct {
		reason      string
		state       process.State
		problem     process.Problem
		want        process.State
		wantMessage string
		wantError   process.Problem
	}{
		"pending":     {"the operation has not started", process.Pending, process.Problem{}, process.Pending, "Operation accepted", process.Problem{}},
		"in progress": {"the message names the stage", process.InProgress, process.Problem{}, process.InProgress, "Operation in progress. Stage CreatingCluster", process.Problem{}},
		"in trouble": {
			"the message is the problem of the last attempt", process.InProgress, quota, process.InProgress, "no quota",
			process.Problem{Message: "no quota", Reason: "ERR_QUOTA", Component: "gardener"},
		},
		"canceling": {"a canceling operation is in progress", process.Canceling, process.Problem{}, process.InProgress, "Operation in progress. Stage CreatingCluster", process.Problem{}},
		"succeeded": {"the operation has succeeded", process.Succeeded, process.Problem{}, process.Succeeded, "Operation succeeded", process.Problem{}},
		"failed": {
			"the message is the cause of the failure", process.Failed, quota, process.Failed, "no quota",
			process.Problem{Message: "no quota", Reason: "ERR_QUOTA", Component: "gardener"},
		},
		"canceled": {
			"the API has no state for it: the reason says so", process.Canceled,
			process.Problem{},
			process.Failed, canceled,
			process.Problem{Message: canceled, Reason: "canceled", Component: failure.ComponentProvisioner},
		},
		"canceled in trouble": {
			"the cancellation replaces the earlier problem", process.Canceled, quota, process.Failed, canceled,
			process.Problem{Message: canceled, Reason: "canceled", Component: failure.ComponentProvisioner},
		},
	}

	f := newFixture(t, storagetest.SQLite(t))
	operationID, runtimeID := f.provision("tenant", "", "c-first")

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f.setState(operationID, c.state, c.problem)

			want := operation.Status{
				ID: operationID, RuntimeID: runtimeID, Kind: operation.KindProvisionNoInstall,
				State: c.want, Message: c.wantMessage, Problem: c.wantError,
			}

			got, err := f.service.OperationStatus(t.Context(), caller("tenant", ""), operationID)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %v, -want +got:\n%s", c.reason, err, diff)
			}

			runtime, err := f.service.RuntimeStatus(t.Context(), caller("tenant", ""), runtimeID, orders.RuntimeFields{})
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(&want, runtime.Operation); diff != "" {
				t.Errorf("%s: as the runtime's last operation, -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

// TestOperationErrors reads the errors from the timeline of an operation whose steps failed several times.
func TestOperationErrors(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		operationID, _ := f.provision("tenant", "", "c-first")

		if messages, err := f.service.OperationErrors(f.Context(), operationID); err != nil || messages == nil || len(messages) > 0 {
			f.Errorf("an operation without errors: %v, %v", messages, err)
		}

		record := f.claimDue()[operationID]
		progress := process.Progress{Record: record, Release: true, Now: time.Now()}

		add := func(outcome process.Outcome, message string) {
			progress.Timeline = append(progress.Timeline, process.Entry{
				Stage: "stage", Step: "Step", Attempt: len(progress.Timeline) + 1, Began: progress.Now, End: progress.Now, Outcome: outcome, Message: message,
			})
		}

		for i := range 25 {
			add(process.Retrying, fmt.Sprintf("error %02d", i))
		}

		add(process.Waiting, "no error")
		add(process.Retrying, "error 10")
		add(process.NotCompleted, "given up")
		add(process.Done, "done")
		add(process.StepFailed, "error 24")
		add(process.OperationFailed, "")

		if _, err := f.ops.Save(f.Context(), progress); err != nil {
			f.Fatal(err)
		}

		want := []string{}
		for i := 6; i < 24; i++ {
			if i != 10 {
				want = append(want, fmt.Sprintf("error %02d", i))
			}
		}

		want = append(want, "error 10", "given up", "error 24")

		messages, err := f.service.OperationErrors(f.Context(), operationID)
		if diff := cmp.Diff(want, messages); diff != "" || err != nil {
			f.Errorf("%v, -want +got\n%s", err, diff)
		}
	})
}

func TestStatusOfOtherTenantsIsNotFound(t *testing.T) {
	onBothDatabases(t, func(f *fixture) {
		operationID, runtimeID := f.provision("tenant", "", "c-first")

		for reason, call := range map[string]struct{ tenant, operationID, runtimeID string }{
			"others": {"other", operationID, runtimeID}, "unknown": {"tenant", "unknown", "unknown"},
		} {
			_, operation := f.service.OperationStatus(f.Context(), caller(call.tenant, ""), call.operationID)
			_, runtime := f.service.RuntimeStatus(f.Context(), caller(call.tenant, ""), call.runtimeID, allFields)

			for what, err := range map[string]error{"operation": operation, "runtime": runtime} {
				want := fmt.Sprintf("this tenant has no %s %q", what, map[string]string{"operation": call.operationID, "runtime": call.runtimeID}[what])
				if known := failure.Of(err); !failure.Is(err, failure.NotFound) || known.Text != want || known.Reason != failure.ReasonNotFound {
					f.Errorf("status of %s, %s: got %v", what, reason, err)
				}
			}
		}
	})
}

func TestRuntimeStatus(t *testing.T) {
	var away error = failure.New(failure.Transient, "Gardener is unavailable")

	cases := map[string]struct {
		reason       string
		prepare      func(f *fixture, creation, runtimeID string)
		want         orders.RuntimeFields
		fails        error
		wantRequests int
	}{
		"made": {
			"a selected kubeconfig is created", func(f *fixture, creation, _ string) { f.finish(creation, process.Succeeded) }, allFields, nil, 1,
		},
		"not wanted": {
			"a kubeconfig that is not selected is not created",
			func(f *fixture, creation, _ string) { f.finish(creation, process.Succeeded) },
			orders.RuntimeFields{},
			nil, 0,
		},
		"being made": {"the cluster does not exist yet", func(*fixture, string, string) {}, allFields, nil, 0},
		"failed":     {"the cluster may not exist", func(f *fixture, creation, _ string) { f.finish(creation, process.Failed) }, allFields, nil, 0},
		"being removed": {
			"the cluster is reachable until it is deleted", func(f *fixture, creation, runtimeID string) {
				f.finish(creation, process.Succeeded)
				f.deprovision("tenant", "", runtimeID)
			}, allFields, nil, 1,
		},
		"removed": {
			"the cluster is deleted", func(f *fixture, creation, runtimeID string) {
				f.finish(creation, process.Succeeded)

				if err := f.store.MarkDeleted(f.Context(), runtimeID, time.Now()); err != nil {
					f.Fatal(err)
				}
			}, allFields, nil, 0,
		},
		"Gardener away": {
			"the other fields are returned with the error", func(f *fixture, creation, _ string) { f.finish(creation, process.Succeeded) }, allFields, away, 1,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, storagetest.SQLite(t))
			creation, runtimeID := f.provision("tenant", "", "c-first")
			c.prepare(f, creation, runtimeID)
			f.kubeconfigError = c.fails

			got, err := f.service.RuntimeStatus(t.Context(), caller("tenant", ""), runtimeID, c.want)
			if !errors.Is(err, c.fails) {
				t.Fatalf("%s: got %v, want %v", c.reason, err, c.fails)
			}

			if got.Operation == nil || got.Cluster == nil {
				t.Fatalf("%s: got %+v", c.reason, got)
			}

			if config := got.Cluster; config.Name != "c-first" {
				t.Errorf("%s: the configuration has the name %s", c.reason, config.Name)
			}

			if got.Connection.State != agent.StatusPending {
				t.Errorf("%s: the connection's state is %s", c.reason, got.Connection.State)
			}

			if kubeconfig := got.Kubeconfig; (kubeconfig != nil) != (c.wantRequests == 1 && c.fails == nil) {
				t.Errorf("%s: the kubeconfig: %v", c.reason, kubeconfig)
			}

			if len(f.requested) != c.wantRequests || (c.wantRequests == 1 && f.requested[0] != "c-first "+validity.String()) {
				t.Errorf("%s: requested kubeconfigs %v", c.reason, f.requested)
			}
		})
	}
}
