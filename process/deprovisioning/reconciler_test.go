package deprovisioning

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakereconciler"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

const reconciled = "runtime-1"

// newReconciler returns a Reconciler with the runtime of the instance, a client, and the record of the runtime.
func newReconciler(t *testing.T) (*fakereconciler.Reconciler, *reconciler.Client, *stepstest.Objects) {
	t.Helper()

	simulated := fakereconciler.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	config := reconciler.DefaultConfig()
	config.URL, config.Timeout = server.URL, time.Second
	client := reconciler.New(config, http.DefaultTransport)

	if _, err := client.Apply(t.Context(), reconciler.Cluster{
		RuntimeID: reconciled, Kubeconfig: `{clusters: [{name: c, cluster: {server: "https://api.example.com"}}]}`,
		Kyma: reconciler.KymaConfig{Components: []reconciler.Component{{Component: "istio"}}},
	}); err != nil {
		t.Fatal(err)
	}

	return simulated, client, stepstest.New(registered(reconciled, environment.OutsideCreated))
}

// registered returns the record of a runtime in the Reconciler.
func registered(runtimeID string, state environment.OutsideState) environment.OutsideObject {
	return environment.OutsideObject{
		InstanceID: instanceID, System: environment.SystemReconciler, Kind: environment.KindCluster, Key: runtimeID, State: state,
	}
}

// runLate runs a step that has run for the duration, after a failure.
func runLate(t *testing.T, step Step, data environment.Data, elapsed time.Duration) (Operation, time.Duration, error) {
	t.Helper()

	return step.Run(t.Context(), process.NewFailingOperation(process.Record{ID: removal, InstanceID: instanceID}, data, began, began.Add(elapsed)), logging.Discard())
}

// TestDeregistration has a case for each row of the table "Removal" in docs/operator/integrations/reconciler.md whose first column is
// DELETE.
func TestDeregistration(t *testing.T) {
	cases := map[string]struct {
		reason   string
		fault    simulator.Fault
		wantWait time.Duration
	}{
		"Away":    {"an outage can pass", simulator.Fault{Unsent: true}, deregisterInterval},
		"Lost":    {"a removal whose response was lost is repeated", simulator.Fault{Lost: true}, deregisterInterval},
		"Slow":    {"a call has a timeout", simulator.Fault{Delay: time.Minute}, deregisterInterval},
		"Garbled": {"no JSON", simulator.Fault{Body: "<html>"}, deregisterInterval},
		"403":     {"an operator can correct the address", simulator.Fault{Status: http.StatusForbidden}, deregisterInterval},
		"400":     {"whatever its error, a removal is repeated", simulator.Fault{Status: http.StatusBadRequest}, deregisterInterval},
		"429":     {"the pause of the system counts", simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 42}, 42 * time.Second},
		"500":     {"whatever its error, a removal is repeated", simulator.Fault{Status: http.StatusInternalServerError}, deregisterInterval},
		"503":     {"the pause of the system counts", simulator.Fault{Status: http.StatusServiceUnavailable, RetryAfter: 43}, 43 * time.Second},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			simulated, client, records := newReconciler(t)
			simulated.Inject(c.fault)

			step := deregisterCluster{client: client, objects: records}

			first, wait, err := run(t, step, newOperation(environment.Data{Instance: instance()}))
			if err != nil || wait != c.wantWait || records.Of(environment.KindCluster).State != environment.OutsideRemoving {
				t.Fatalf("%s: runs again after %s, %v, with %v", c.reason, wait, err, records.Lines())
			}

			again := done(t, step, newOperation(stored(t, first.Data)))
			if again.Data.ConfigurationVersion == 0 || simulated.States()[reconciled].Status != reconciler.DeletePending {
				t.Errorf("%s: the Reconciler has %v", c.reason, simulated.Holds())
			}

			simulated.Inject(simulator.Fault{Status: http.StatusServiceUnavailable})

			if _, wait, err := runLate(t, step, first.Data, cleanupWindow); err != nil || wait != 0 || records.Of(environment.KindCluster).State != environment.OutsideLeftOver {
				t.Errorf("%s: after the limit, the step returns %s, %v, with %v", c.reason, wait, err, records.Lines())
			}
		})
	}
}

// TestDeregistrationDuringRenewal checks that the removal follows a renewal of the kubeconfig, which would otherwise register the runtime
// again.
func TestDeregistrationDuringRenewal(t *testing.T) {
	simulated, client, records := newReconciler(t)
	records.Records[0].Credential.RenewingUntil = began.Add(2 * time.Minute)
	step := deregisterCluster{client: client, objects: records}

	_, wait, err := runLate(t, step, environment.Data{Instance: instance()}, time.Minute)
	if err != nil || wait != time.Minute || simulated.States()[reconciled].Status != reconciler.Pending || records.Of(environment.KindCluster).State != environment.OutsideRemoving {
		t.Errorf("runs again after %s, %v, with %v and %v", wait, err, records.Lines(), simulated.Holds())
	}

	if _, wait, err := runLate(t, step, environment.Data{Instance: instance()}, 2*time.Minute); err != nil || wait != 0 || simulated.States()[reconciled].Status != reconciler.DeletePending {
		t.Errorf("after the renewal, the step returns %s, %v, with %v", wait, err, simulated.Holds())
	}
}

// TestDeregistrationStatuses has a case for each row of the table "Removal" in docs/operator/integrations/reconciler.md whose first
// column is a status.
func TestDeregistrationStatuses(t *testing.T) {
	get := func(fault simulator.Fault) simulator.Fault {
		fault.Operation = "getStatus"

		return fault
	}

	cases := map[string]struct {
		reason   string
		status   reconciler.Status
		fault    simulator.Fault
		elapsed  time.Duration
		wantWait time.Duration
		want     environment.OutsideState
	}{
		"Pending":   {reason: "the Reconciler works", status: reconciler.DeletePending, wantWait: deregisteringInterval, want: environment.OutsideRemoving},
		"Deleting":  {reason: "the Reconciler works", status: reconciler.Deleting, wantWait: deregisteringInterval, want: environment.OutsideRemoving},
		"Retryable": {reason: "the Reconciler retries", status: reconciler.DeleteRetryable, wantWait: deregisteringInterval, want: environment.OutsideRemoving},
		"Other":     {reason: "the Reconciler may not have begun", status: reconciler.Reconciling, wantWait: deregisteringErrorInterval, want: environment.OutsideRemoving},
		"Deleted":   {reason: "Kyma is removed", status: reconciler.Deleted},
		"404":       {reason: "the registration is gone", status: reconciler.Deleting, fault: get(simulator.Fault{Status: http.StatusNotFound})},
		"Failed":    {reason: "the Reconciler has given up", status: reconciler.DeleteError, want: environment.OutsideLeftOver},
		"Error":     {reason: "the Reconciler has given up", status: reconciler.Error, want: environment.OutsideLeftOver},
		"Late":      {reason: "the limit", status: reconciler.Deleting, elapsed: deregistrationLimit, want: environment.OutsideLeftOver},
		"LateGone":  {reason: "the limit does not matter any more", status: reconciler.Deleted, elapsed: deregistrationLimit},
		"Away":      {reason: "an outage can pass", status: reconciler.Deleting, fault: get(simulator.Fault{Unsent: true, Times: -1}), wantWait: deregisteringErrorInterval, want: environment.OutsideRemoving},
		"Garbled":   {reason: "no JSON", status: reconciler.Deleting, fault: get(simulator.Fault{Body: "<html>"}), wantWait: deregisteringErrorInterval, want: environment.OutsideRemoving},
		"400":       {reason: "it may pass", status: reconciler.Deleting, fault: get(simulator.Fault{Status: http.StatusBadRequest}), wantWait: deregisteringErrorInterval, want: environment.OutsideRemoving},
		"429":       {reason: "the pause of the system counts", status: reconciler.Deleting, fault: get(simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 42}), wantWait: 42 * time.Second, want: environment.OutsideRemoving},
		"503":       {reason: "the pause of the system counts", status: reconciler.Deleting, fault: get(simulator.Fault{Status: http.StatusServiceUnavailable, RetryAfter: 42}), wantWait: 42 * time.Second, want: environment.OutsideRemoving},
		"LateAway":  {reason: "the limit of an outage", status: reconciler.Deleting, fault: get(simulator.Fault{Unsent: true, Times: -1}), elapsed: deregistrationLimit, want: environment.OutsideLeftOver},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			simulated, client, records := newReconciler(t)
			removing := done(t, deregisterCluster{client: client, objects: records}, newOperation(environment.Data{Instance: instance()}))
			simulated.Freeze(reconciled, c.status)

			if c.fault != (simulator.Fault{}) {
				simulated.Inject(c.fault)
			}

			_, wait, err := runLate(t, checkDeregistration{client: client, objects: records}, removing.Data, c.elapsed)
			if err != nil || wait != c.wantWait || records.Of(environment.KindCluster).State != c.want {
				t.Errorf("%s: runs again after %s, %v, with %v", c.reason, wait, err, records.Lines())
			}
		})
	}
}

func TestDeregistrationWithoutARequest(t *testing.T) {
	simulated, client, records := newReconciler(t)
	before := len(simulated.Calls())

	records.Lost = true
	if _, _, err := run(t, deregisterCluster{client: client, objects: records}, newOperation(environment.Data{})); !failure.Is(err, failure.Transient) {
		t.Errorf("without its lease, the step returns %v", err)
	}

	records.Lost = false
	done(t, checkDeregistration{client: client, objects: records}, newOperation(environment.Data{})) // an operator has skipped the request
	done(t, deregisterCluster{objects: records}, newOperation(environment.Data{}))
	done(t, checkDeregistration{objects: records}, newOperation(environment.Data{}))

	if got := records.Of(environment.KindCluster).State; got != environment.OutsideLeftOver {
		t.Errorf("with the Reconciler turned off, the record is %q", got)
	}

	records.Records = nil
	done(t, deregisterCluster{client: client, objects: records}, newOperation(environment.Data{}))

	if got := len(simulated.Calls()); got != before {
		t.Errorf("the Reconciler was called %d times", got-before)
	}

	records = stepstest.New(registered(reconciled, environment.OutsideRemoving))

	_, wait, err := run(t, checkDeregistration{objects: records}, newOperation(environment.Data{}))
	if err != nil || wait != 0 || records.Of(environment.KindCluster).State != environment.OutsideLeftOver {
		t.Errorf("the Reconciler is turned off during a removal: %s, %v, %v", wait, err, records.Lines())
	}
}

// TestUnknownCluster checks that a cluster that the Reconciler does not know counts as removed.
func TestUnknownCluster(t *testing.T) {
	_, client, _ := newReconciler(t)
	records := stepstest.New(registered("unknown", environment.OutsideCreated))

	done(t, deregisterCluster{client: client, objects: records}, newOperation(environment.Data{}))

	if len(records.Records) != 0 {
		t.Errorf("recorded: %v", records.Lines())
	}
}

// TestReconcilerReport checks that operators see the failed components, and users only their names.
func TestReconcilerReport(t *testing.T) {
	simulated, client, records := newReconciler(t)
	removing := done(t, deregisterCluster{client: client, objects: records}, newOperation(environment.Data{Instance: instance()}))
	simulated.Freeze(reconciled, reconciler.DeleteRetryable, reconciler.Failure{Component: "istio", Reason: "finalizer"})

	if _, err := client.Find(t.Context(), reconciled, removing.Data.ConfigurationVersion); err != nil {
		t.Fatal(err)
	}

	if got := simulated.States()[reconciled]; !strings.Contains(got.Report(), "istio: finalizer") || got.Failed() != "istio" {
		t.Errorf("%s, %s", got.Report(), got.Failed())
	}
}
