package reconciling

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakereconciler"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

const (
	runtimeID  = "runtime-1"
	kubeconfig = `{clusters: [{name: c, cluster: {server: "https://api.example.com"}}], users: [{name: u, user: {token: secret-token}}]}`
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fixture is a simulated Reconciler with the record of one instance, and the kubeconfig of its runtime.
type fixture struct {
	*Reconciler

	simulated  *fakereconciler.Reconciler
	records    *stepstest.Objects
	kubeconfig string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()

	f := &fixture{simulated: fakereconciler.New(), records: stepstest.New(), kubeconfig: kubeconfig}
	server := httptest.NewServer(f.simulated)
	t.Cleanup(server.Close)

	config := reconciler.DefaultConfig()
	config.URL, config.Timeout = server.URL, time.Second
	f.Reconciler = &Reconciler{
		Client: reconciler.New(config, http.DefaultTransport), Objects: f.records, Kubeconfigs: f, ShootDomain: "example.com", Limit: 2 * time.Hour,
	}

	return f
}

// object returns the record of the runtime.
func (f *fixture) object() environment.OutsideObject { return f.records.Of(environment.KindCluster) }

// AdminKubeconfig implements Kubeconfigs.
func (f *fixture) AdminKubeconfig(context.Context, environment.Instance) (secret.String, error) {
	if f.kubeconfig == "" {
		return "", failure.New(failure.Transient, "the Provisioner is away")
	}

	return secret.String(f.kubeconfig), nil
}

func instance() environment.Instance {
	return environment.Instance{ID: "instance-1", RuntimeID: runtimeID, ShootName: "c-1234567", Request: environment.Request{Cluster: environment.Cluster{
		Kyma: &environment.Kyma{Installer: environment.InstallerReconciler, Installation: &environment.KymaInstallation{
			Version: "1.0.0", Components: []environment.KymaComponent{{Name: "istio", Namespace: "istio-system"}},
		}},
	}}}
}

func newOperation(elapsed time.Duration) Operation {
	return process.NewFailingOperation(process.Record{ID: "op-1", InstanceID: "instance-1"},
		environment.Data{Instance: instance()}, began, began.Add(elapsed))
}

// TestRegistration has a case for each row of the table "Registration" in docs/operator/integrations/reconciler.md.
func TestRegistration(t *testing.T) {
	const lasting = -1

	cases := map[string]struct {
		reason   string
		fault    simulator.Fault
		change   func(*fixture)
		wantWait time.Duration
		wantKind failure.Kind
	}{
		"Away":       {reason: "an outage can pass", fault: simulator.Fault{Unsent: true, Times: lasting}, wantWait: applyInterval},
		"Lost":       {reason: "the Reconciler recognizes the repeated registration", fault: simulator.Fault{Lost: true}, wantWait: applyInterval},
		"Slow":       {reason: "a call has a timeout", fault: simulator.Fault{Delay: time.Minute, Times: lasting}, wantWait: applyInterval},
		"Garbled":    {reason: "no JSON", fault: simulator.Fault{Body: "<html>", Times: lasting}, wantWait: applyInterval},
		"Incomplete": {reason: "no version", fault: simulator.Fault{Body: "{}", Times: lasting}, wantWait: applyInterval},
		"Kubeconfig": {reason: "a new runtime may not respond yet", change: func(f *fixture) { f.kubeconfig = "none" }, wantWait: applyInterval},
		"401":        {reason: "a gateway may reject us until an operator acts", fault: simulator.Fault{Status: http.StatusUnauthorized, Times: lasting}, wantWait: applyInterval},
		"408":        {reason: "a gateway may have lost the request", fault: simulator.Fault{Status: http.StatusRequestTimeout, Times: lasting}, wantWait: applyInterval},
		"409":        {reason: "another attempt would be rejected as well", fault: simulator.Fault{Status: http.StatusConflict}, wantKind: failure.Conflict},
		"500":        {reason: "the Reconciler may recover", fault: simulator.Fault{Status: http.StatusInternalServerError, Times: lasting}, wantWait: applyInterval},
		"403":        {reason: "an operator can correct the address", fault: simulator.Fault{Status: http.StatusForbidden, Times: lasting}, wantWait: applyInterval},
		"429":        {reason: "the pause of the system counts", fault: simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 42, Times: lasting}, wantWait: 42 * time.Second},
		"503":        {reason: "an overloaded system can recover", fault: simulator.Fault{Status: http.StatusServiceUnavailable, Times: lasting}, wantWait: applyInterval},
		"400":        {reason: "another attempt would be rejected as well", fault: simulator.Fault{Status: http.StatusBadRequest}, wantKind: failure.Permanent},
		"NoAccess":   {reason: "the stage retries the Provisioner", change: func(f *fixture) { f.kubeconfig = "" }, wantKind: failure.Transient},
		"Lease":      {reason: "another replica runs the operation", change: func(f *fixture) { f.records.Lost = true }, wantKind: failure.Transient},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if c.change != nil {
				c.change(f)
			} else {
				f.simulated.Inject(c.fault)
			}

			_, wait, err := f.Apply(t.Context(), newOperation(0), instance())
			if wait != c.wantWait || (err != nil) != (c.wantKind != "") || err != nil && !failure.Is(err, c.wantKind) {
				t.Fatalf("%s: runs again after %s, %v", c.reason, wait, err)
			}

			if created := f.object().State == environment.OutsideCreating; created != (name != "NoAccess" && name != "Lease") {
				t.Errorf("%s: the object is recorded as %q", c.reason, f.object().State)
			}

			f.simulated.Reset()
			f.kubeconfig, f.records.Lost = kubeconfig, false

			after, wait, err := f.Apply(t.Context(), newOperation(0), instance())
			if err != nil || wait != 0 || after.Data.ConfigurationVersion != f.simulated.States()[runtimeID].ConfigurationVersion {
				t.Errorf("%s: afterwards, the step waits for version %d after %s, %v", c.reason, after.Data.ConfigurationVersion, wait, err)
			}

			want := environment.OutsideObject{
				InstanceID: "instance-1", System: environment.SystemReconciler, Kind: environment.KindCluster, Key: runtimeID, State: environment.OutsideCreated,
				Credential: environment.NewCredential(began, time.Time{}),
			}
			if diff := cmp.Diff(want, f.object()); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
		})
	}
}

// TestRegistrationDuringRenewal checks that an operation sends nothing while a renewal of the kubeconfig can be in progress.
func TestRegistrationDuringRenewal(t *testing.T) {
	f := newFixture(t)
	f.records.Records = []environment.OutsideObject{{
		InstanceID: "instance-1", System: environment.SystemReconciler, Kind: environment.KindCluster, Key: runtimeID, State: environment.OutsideCreated,
		Credential: environment.Credential{RenewingUntil: began.Add(2 * time.Minute)},
	}}

	if _, wait, err := f.Apply(t.Context(), newOperation(time.Minute), instance()); err != nil || wait != time.Minute || len(f.simulated.Operations()) > 0 {
		t.Errorf("the step runs again after %s, %v, with the calls %v", wait, err, f.simulated.Operations())
	}

	if f.records.Writes != 1 {
		t.Errorf("the step has written %d times before it waits, want 1", f.records.Writes)
	}

	if _, wait, err := f.Apply(t.Context(), newOperation(2*time.Minute), instance()); err != nil || wait != 0 || len(f.simulated.Clusters()) != 1 {
		t.Errorf("after the renewal, the step returns %s, %v", wait, err)
	}
}

func TestRegistrationIsRecordedBefore(t *testing.T) {
	f := newFixture(t)
	f.records.Lost = true

	if _, _, err := f.Apply(t.Context(), newOperation(0), instance()); err == nil || len(f.simulated.Operations()) != 0 {
		t.Errorf("without its lease, the step calls %v, %v", f.simulated.Operations(), err)
	}
}

// TestKubeconfigIsRenewed checks that another operation sends a kubeconfig that the Reconciler takes over.
func TestKubeconfigIsRenewed(t *testing.T) {
	f := newFixture(t)

	for _, operation := range []string{"op-1", "op-2"} {
		f.kubeconfig = strings.Replace(kubeconfig, "secret-token", operation, 1)
		sent := newOperation(0)
		sent.ID = operation

		if _, wait, err := f.Apply(t.Context(), sent, instance()); err != nil || wait != 0 {
			t.Fatal(wait, err)
		}

		if got := f.simulated.Clusters()[runtimeID].Kubeconfig; got != f.kubeconfig {
			t.Errorf("the Reconciler has the kubeconfig %s", got)
		}
	}
}

// TestFormerRuntime checks that the registration of a former runtime, whose removal was given up, does not stay.
func TestFormerRuntime(t *testing.T) {
	f := newFixture(t)

	former := instance()
	former.RuntimeID = "former"

	if _, _, err := f.Apply(t.Context(), newOperation(0), former); err != nil {
		t.Fatal(err)
	}

	f.records.Records[0].State = environment.OutsideLeftOver
	f.simulated.Inject(simulator.Fault{Operation: "deleteCluster", Status: http.StatusServiceUnavailable})

	if _, wait, err := f.Apply(t.Context(), newOperation(0), instance()); err != nil || wait != applyInterval || f.object().Key != "former" {
		t.Errorf("runs again after %s, %v, with the record of %s", wait, err, f.object().Key)
	}

	if _, wait, err := f.Apply(t.Context(), newOperation(0), instance()); err != nil || wait != 0 || f.object().Key != runtimeID {
		t.Errorf("runs again after %s, %v, with the record of %s", wait, err, f.object().Key)
	}

	if got := f.simulated.States()["former"].Status; got != reconciler.DeletePending {
		t.Errorf("the former runtime is %q", got)
	}
}

// TestStatuses has a case for each row of the table "Installation" in docs/operator/integrations/reconciler.md.
func TestStatuses(t *testing.T) {
	const limit = 2 * time.Hour

	failures := []reconciler.Failure{{Component: "istio", Reason: "no memory"}}

	cases := map[string]struct {
		reason   string
		status   reconciler.Status
		fault    simulator.Fault
		elapsed  time.Duration
		wantWait time.Duration
		wantText string
		// removed reports that the step of a creation removes the runtime from the Reconciler.
		removed bool
	}{
		"Pending":     {reason: "the Reconciler works", status: reconciler.Pending, wantWait: pollInterval},
		"Reconciling": {reason: "the Reconciler works", status: reconciler.Reconciling, wantWait: pollInterval},
		"Retryable":   {reason: "the Reconciler retries", status: reconciler.ErrorRetryable, wantWait: retryInterval},
		"Ready":       {reason: "Kyma is installed", status: reconciler.Ready},
		"LateReady":   {reason: "also after the limit", status: reconciler.Ready, elapsed: limit},
		"Error":       {reason: "the Reconciler has given up", status: reconciler.Error, wantText: "the Reconciler could not install Kyma: components istio"},
		"Disabled":    {reason: "somebody has stopped it", status: reconciler.Disabled, wantText: "the Reconciler could not install Kyma: components istio"},
		"Unknown":     {reason: "nobody knows the status", status: "sleeping", wantText: "the Reconciler could not install Kyma: components istio"},
		"Away":        {reason: "an outage can pass", status: reconciler.Ready, fault: simulator.Fault{Operation: "getStatus", Unsent: true, Times: -1}, wantWait: errorInterval},
		"Lost":        {reason: "a lost response is repeated", status: reconciler.Ready, fault: simulator.Fault{Operation: "getStatus", Lost: true, Times: -1}, wantWait: errorInterval},
		"Slow":        {reason: "a call has a timeout", status: reconciler.Ready, fault: simulator.Fault{Operation: "getStatus", Delay: time.Minute}, wantWait: errorInterval},
		"Garbled":     {reason: "no JSON", status: reconciler.Ready, fault: simulator.Fault{Operation: "getStatus", Body: "<html>"}, wantWait: errorInterval},
		"429":         {reason: "the pause of the system counts", status: reconciler.Ready, fault: simulator.Fault{Operation: "getStatus", Status: http.StatusTooManyRequests, RetryAfter: 42}, wantWait: 42 * time.Second},
		"503":         {reason: "an overloaded system can recover", status: reconciler.Ready, fault: simulator.Fault{Operation: "getStatus", Status: http.StatusServiceUnavailable}, wantWait: errorInterval},
		"Retry503":    {reason: "the pause of the system counts", status: reconciler.Ready, fault: simulator.Fault{Operation: "getStatus", Status: http.StatusServiceUnavailable, RetryAfter: 42}, wantWait: 42 * time.Second},
		"404": {
			reason: "somebody has removed the runtime", status: reconciler.Ready, fault: simulator.Fault{Operation: "getStatus", Status: http.StatusNotFound},
			wantText: "the Reconciler could not return the state of the runtime: it rejects the request with HTTP status 404 Not Found",
		},
		"Late":     {reason: "the limit", status: reconciler.Reconciling, elapsed: limit, wantText: "the Reconciler has not installed Kyma within 2h0m0s", removed: true},
		"LateAway": {reason: "the limit of an outage", status: reconciler.Ready, fault: simulator.Fault{Operation: "getStatus", Unsent: true, Times: -1}, elapsed: limit, wantText: "the Reconciler has not installed Kyma within 2h0m0s", removed: true},
	}

	for name, c := range cases {
		for _, removes := range []bool{false, true} {
			f := newFixture(t)

			registered, _, err := f.Apply(t.Context(), newOperation(c.elapsed), instance())
			if err != nil {
				t.Fatal(err)
			}

			f.simulated.Freeze(runtimeID, c.status, failures...)

			if c.fault != (simulator.Fault{}) {
				f.simulated.Inject(c.fault)
			}

			step := f.Await
			if removes {
				step = f.AwaitOrRemove
			}

			_, wait, err := step(t.Context(), registered, logging.Discard())
			if wait != c.wantWait || (err != nil) != (c.wantText != "") || err != nil && (failure.Of(err).Text != c.wantText || retryable(err)) {
				t.Errorf("%s (%s): runs again after %s, %v", name, c.reason, wait, err)
			}

			if removed := f.simulated.States()[runtimeID].Status == reconciler.DeletePending; removed != (removes && c.removed) ||
				removed != (f.object().State == environment.OutsideRemoving) {
				t.Errorf("%s (%s): removed %t, recorded as %s", name, c.reason, removed, f.object().State)
			}
		}
	}
}

func retryable(err error) bool {
	return failure.Is(err, failure.Transient) || failure.Is(err, failure.Waiting)
}

// TestRemovalAfterTheLimit checks that the removal after the limit is repeated, but does not hold up the end of the operation.
func TestRemovalAfterTheLimit(t *testing.T) {
	f := newFixture(t)

	registered, _, err := f.Apply(t.Context(), newOperation(f.Limit), instance())
	if err != nil {
		t.Fatal(err)
	}

	f.simulated.Freeze(runtimeID, reconciler.Reconciling)
	f.simulated.Inject(simulator.Fault{Operation: "deleteCluster", Unsent: true, Times: -1})

	if _, wait, err := f.AwaitOrRemove(t.Context(), registered, logging.Discard()); err != nil || wait != removeInterval {
		t.Errorf("runs again after %s, %v", wait, err)
	}

	late := newOperation(f.Limit + removeWindow)
	late.Data = registered.Data

	if _, _, err := f.AwaitOrRemove(t.Context(), late, logging.Discard()); failure.Of(err).Reason != failure.ReasonTimeout || f.object().State != environment.OutsideRemoving {
		t.Errorf("afterwards: %v, recorded as %s", err, f.object().State)
	}
}

func TestOff(t *testing.T) {
	f := newFixture(t)
	f.Client = nil

	_, _, applied := f.Apply(t.Context(), newOperation(0), instance())
	_, _, awaited := f.Await(t.Context(), newOperation(0), logging.Discard())

	for _, err := range []error{applied, awaited} {
		if !failure.Is(err, failure.Permanent) || !strings.Contains(failure.Of(err).Text, "APP_RECONCILER_URL") {
			t.Errorf("got %v", err)
		}
	}
}

// TestNoSecrets checks that neither the stored data nor an error contains a secret.
func TestNoSecrets(t *testing.T) {
	f := newFixture(t)
	f.simulated.Inject(simulator.Fault{Operation: "applyCluster", Status: http.StatusBadRequest})

	_, _, err := f.Apply(t.Context(), newOperation(0), instance())
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is %v", err)
	}

	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		if strings.Contains(cause.Error(), "secret-token") {
			t.Errorf("a cause contains a secret: %v", cause)
		}
	}
}
