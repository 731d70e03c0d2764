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
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
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
	config.URL, config.Timeout = server.URL, 2*time.Second
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

// runLate runs a step whose first attempt was the given time ago and failed.
func runLate(t *testing.T, step Step, data environment.Data, elapsed time.Duration) (Operation, time.Duration, error) {
	t.Helper()

	return step.Run(t.Context(), process.NewFailingOperation(process.Record{ID: removal, InstanceID: instanceID}, data, began, began.Add(elapsed)), logging.Discard())
}

// TestDeregistration checks after which faults the request is repeated, and the recorded state after the window.
//
//faults:table reconciler.md#removal
func TestDeregistration(t *testing.T) {
	const interval = 15 * time.Second

	cases := map[string]struct {
		reason   string
		fault    simulator.Fault
		wantWait time.Duration
	}{
		"DELETE: unreachable, or the response is lost/unreachable": {"an outage can pass", simulator.Fault{Unsent: true}, interval},
		"DELETE: slow":         {"a call has a timeout", simulator.Fault{Delay: time.Minute}, interval},
		"DELETE: no JSON/HTML": {"a proxy may answer with HTML", simulator.Fault{Body: "<html>"}, interval},
		"DELETE: no JSON/404":  {"a proxy without a backend does not know the runtime", simulator.Fault{Status: http.StatusNotFound, Body: "<html>"}, interval},
		"DELETE: unreachable, or the response is lost/lost": {"a removal whose response was lost is repeated", simulator.Fault{Lost: true}, interval},
		"DELETE: 429, 503 with Retry-After/429":             {"the pause of the system counts", simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 42}, 42 * time.Second},
		"DELETE: 429, 503 with Retry-After/503":             {"at most five minutes", simulator.Fault{Status: http.StatusServiceUnavailable, RetryAfter: 3600}, 5 * time.Minute},
		"DELETE: 400, 409 and other statuses/400":           {"whatever its error, a removal is repeated", simulator.Fault{Status: http.StatusBadRequest}, interval},
		"DELETE: 401, 403/401":                              {"an operator can correct the address", simulator.Fault{Status: http.StatusUnauthorized}, interval},
		"DELETE: 401, 403/403":                              {"an operator can correct the address", simulator.Fault{Status: http.StatusForbidden}, interval},
		"DELETE: 408, 500 and above/408":                    {"a gateway may have lost the request", simulator.Fault{Status: http.StatusRequestTimeout}, interval},
		"DELETE: 400, 409 and other statuses/409":           {"whatever its error, a removal is repeated", simulator.Fault{Status: http.StatusConflict}, interval},
		"DELETE: 408, 500 and above/500":                    {"the Reconciler may recover", simulator.Fault{Status: http.StatusInternalServerError}, interval},
		"DELETE: 408, 500 and above/503":                    {"an overloaded system can recover", simulator.Fault{Status: http.StatusServiceUnavailable}, interval},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulated, client, records := newReconciler(t)
			simulated.Inject(c.fault)

			step := deregisterCluster{client: client, objects: records}

			first, wait, err := run(t, step, newOperation(environment.Data{Instance: instance()}))
			if err != nil || wait != c.wantWait || records.Of(environment.KindCluster).State != environment.OutsideRemoving {
				t.Fatalf("%s: runs again after %s, %v, with %v", c.reason, wait, err, records.Lines())
			}

			faulttable.Shows(t, "reconciler.md#removal", name, stepstest.Shown(first, err))

			again := done(t, step, newOperation(stored(t, first.Data)))
			if again.Data.ConfigurationVersion == 0 || simulated.States()[reconciled].Status != reconciler.DeletePending {
				t.Errorf("%s: the Reconciler has %v", c.reason, simulated.Holds())
			}

			simulated.Inject(c.fault)

			if _, wait, err := runLate(t, step, first.Data, 5*time.Minute); err != nil || wait != 0 || records.Of(environment.KindCluster).State != environment.OutsideLeftOver {
				t.Errorf("%s: after the limit, the step returns %s, %v, with %v", c.reason, wait, err, records.Lines())
			}
		})
	}
}

// TestDeregistrationDuringRenewal checks that the removal follows a renewal of the kubeconfig, which would otherwise register the runtime
// again.
//
//faults:row reconciler.md#current-kubeconfigs an operation begins during a renewal
//faults:row reconciler.md#removal a renewal of the kubeconfig is in progress
func TestDeregistrationDuringRenewal(t *testing.T) {
	simulated, client, records := newReconciler(t)
	records.Records[0].Credential.RenewingUntil = began.Add(2 * time.Minute)
	step := deregisterCluster{client: client, objects: records}

	after, wait, err := runLate(t, step, environment.Data{Instance: instance()}, time.Minute)
	if err != nil || wait != time.Minute || simulated.States()[reconciled].Status != reconciler.Pending || records.Of(environment.KindCluster).State != environment.OutsideRemoving {
		t.Errorf("runs again after %s, %v, with %v and %v", wait, err, records.Lines(), simulated.Holds())
	}

	faulttable.Shows(t, "reconciler.md#removal", "a renewal of the kubeconfig is in progress", stepstest.Shown(after, err))

	if _, wait, err := runLate(t, step, environment.Data{Instance: instance()}, 2*time.Minute); err != nil || wait != 0 || simulated.States()[reconciled].Status != reconciler.DeletePending {
		t.Errorf("after the renewal, the step returns %s, %v, with %v", wait, err, simulated.Holds())
	}
}

// TestDeregistrationStatuses checks after which statuses the status is read again, and the recorded state after each of them.
//
//faults:table reconciler.md#removal
func TestDeregistrationStatuses(t *testing.T) {
	const (
		polled = 30 * time.Second
		failed = time.Minute
		limit  = 90 * time.Minute
	)

	cases := map[string]struct {
		reason   string
		status   reconciler.Status
		fault    simulator.Fault // of the request for the status
		elapsed  time.Duration
		wantWait time.Duration
		want     environment.OutsideState
	}{
		"delete_pending, deleting, delete_error_retryable/pending":   {reason: "the Reconciler works", status: reconciler.DeletePending, wantWait: polled, want: environment.OutsideRemoving},
		"delete_pending, deleting, delete_error_retryable/deleting":  {reason: "the Reconciler works", status: reconciler.Deleting, wantWait: polled, want: environment.OutsideRemoving},
		"delete_pending, deleting, delete_error_retryable/retryable": {reason: "the Reconciler retries", status: reconciler.DeleteRetryable, wantWait: polled, want: environment.OutsideRemoving},
		"other statuses":             {reason: "the Reconciler may not have begun", status: reconciler.Reconciling, wantWait: failed, want: environment.OutsideRemoving},
		"deleted, or 404/deleted":    {reason: "Kyma is removed", status: reconciler.Deleted},
		"deleted, or 404/404":        {reason: "the registration is gone", fault: simulator.Fault{Status: http.StatusNotFound}},
		"deleted, or 404/late":       {reason: "the limit does not matter any more", status: reconciler.Deleted, elapsed: limit},
		"delete_error, error/delete": {reason: "the Reconciler has given up", status: reconciler.DeleteError, want: environment.OutsideLeftOver},
		"delete_error, error/error":  {reason: "the Reconciler has given up", status: reconciler.Error, want: environment.OutsideLeftOver},
		"reading the status: unreachable, or the response is lost/unreachable": {reason: "an outage can pass", fault: simulator.Fault{Unsent: true}, wantWait: failed, want: environment.OutsideRemoving},
		"reading the status: slow":                                      {reason: "a call has a timeout", fault: simulator.Fault{Delay: time.Minute}, wantWait: failed, want: environment.OutsideRemoving},
		"reading the status: no JSON/HTML":                              {reason: "a proxy may answer with HTML", fault: simulator.Fault{Body: "<html>"}, wantWait: failed, want: environment.OutsideRemoving},
		"reading the status: no JSON/404":                               {reason: "a proxy without a backend does not know the runtime", fault: simulator.Fault{Status: http.StatusNotFound, Body: "<html>"}, wantWait: failed, want: environment.OutsideRemoving},
		"reading the status: unreachable, or the response is lost/lost": {reason: "a lost response is repeated", fault: simulator.Fault{Lost: true}, wantWait: failed, want: environment.OutsideRemoving},
		"reading the status: 400, 409 and other statuses/400":           {reason: "it may pass", fault: simulator.Fault{Status: http.StatusBadRequest}, wantWait: failed, want: environment.OutsideRemoving},
		"reading the status: 401, 403/401":                              {reason: "an operator can correct the address", fault: simulator.Fault{Status: http.StatusUnauthorized}, wantWait: failed, want: environment.OutsideRemoving},
		"reading the status: 401, 403/403":                              {reason: "an operator can correct the address", fault: simulator.Fault{Status: http.StatusForbidden}, wantWait: failed, want: environment.OutsideRemoving},
		"reading the status: 400, 409 and other statuses/409":           {reason: "it may pass", fault: simulator.Fault{Status: http.StatusConflict}, wantWait: failed, want: environment.OutsideRemoving},
		"reading the status: 408, 500 and above/500":                    {reason: "the Reconciler may recover", fault: simulator.Fault{Status: http.StatusInternalServerError}, wantWait: failed, want: environment.OutsideRemoving},
		"reading the status: 408, 500 and above/408":                    {reason: "a gateway may have lost the request", fault: simulator.Fault{Status: http.StatusRequestTimeout}, wantWait: failed, want: environment.OutsideRemoving},
		"reading the status: 408, 500 and above/503":                    {reason: "an overloaded system can recover", fault: simulator.Fault{Status: http.StatusServiceUnavailable}, wantWait: failed, want: environment.OutsideRemoving},
		"reading the status: 429, 503 with Retry-After/429":             {reason: "the pause of the system counts", fault: simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 42}, wantWait: 42 * time.Second, want: environment.OutsideRemoving},
		"reading the status: 429, 503 with Retry-After/503":             {reason: "at most five minutes", fault: simulator.Fault{Status: http.StatusServiceUnavailable, RetryAfter: 3600}, wantWait: 5 * time.Minute, want: environment.OutsideRemoving},
		"any other, or no status, after the limit/deleting":             {reason: "the limit", status: reconciler.Deleting, elapsed: limit, want: environment.OutsideLeftOver},
		"any other, or no status, after the limit/unreachable":          {reason: "the limit of an outage", fault: simulator.Fault{Unsent: true}, elapsed: limit, want: environment.OutsideLeftOver},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulated, client, records := newReconciler(t)
			removing := done(t, deregisterCluster{client: client, objects: records}, newOperation(environment.Data{Instance: instance()}))
			simulated.Freeze(reconciled, c.status)

			if c.fault != (simulator.Fault{}) {
				c.fault.Operation, c.fault.Times = "getStatus", -1
				simulated.Freeze(reconciled, reconciler.Deleting)
				simulated.Inject(c.fault)
			}

			after, wait, err := runLate(t, checkDeregistration{client: client, objects: records}, removing.Data, c.elapsed)
			if err != nil || wait != c.wantWait || records.Of(environment.KindCluster).State != c.want {
				t.Errorf("%s: runs again after %s, %v, with %v", c.reason, wait, err, records.Lines())
			}

			faulttable.Shows(t, "reconciler.md#removal", name, stepstest.Shown(after, err))
		})
	}
}

// TestDeregistrationWithoutARequest checks when the steps call the Reconciler at all.
//
//faults:row reconciler.md#removal DELETE while the Reconciler is turned off
func TestDeregistrationWithoutARequest(t *testing.T) {
	simulated, client, records := newReconciler(t)
	before := len(simulated.Calls())

	records.Lost = true
	if _, _, err := run(t, deregisterCluster{client: client, objects: records}, newOperation(environment.Data{})); !failure.Is(err, failure.Transient) {
		t.Errorf("without its lease, the step returns %v", err)
	}

	records.Lost = false
	done(t, checkDeregistration{client: client, objects: records}, newOperation(environment.Data{})) // an operator has skipped the request
	off := done(t, deregisterCluster{objects: records}, newOperation(environment.Data{}))
	faulttable.Shows(t, "reconciler.md#removal", "DELETE while the Reconciler is turned off", stepstest.Shown(off, nil))
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
//
//faults:row reconciler.md#removal DELETE: 404
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
