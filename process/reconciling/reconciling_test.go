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
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
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
	config.URL, config.Timeout = server.URL, 2*time.Second
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
		return "", failure.New(failure.Transient, "the Provisioner is unreachable")
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

// TestRegistration checks the message after each fault, whether the registration is repeated, and that it is recorded before it is sent.
//
//faults:table reconciler.md#registration
func TestRegistration(t *testing.T) {
	const (
		lasting     = -1
		interval    = 10 * time.Second
		window      = time.Hour
		could       = "the Reconciler could not accept the Kyma configuration: it "
		credentials = ": an operator must correct APP_RECONCILER_URL"
	)

	cases := map[string]struct {
		reason   string
		fault    simulator.Fault
		change   func(*fixture)
		wantText string
		wantWait time.Duration
		wantKind failure.Kind // of the error, if the step does not repeat itself
	}{
		"is unreachable, or its response is lost/unreachable": {
			reason: "an outage can pass", fault: simulator.Fault{Unsent: true}, wantText: "the Reconciler cannot be reached", wantWait: interval,
		},
		"is unreachable, or its response is lost/lost": {
			reason: "the Reconciler recognizes the repeated registration", fault: simulator.Fault{Lost: true}, wantText: "the Reconciler cannot be reached", wantWait: interval,
		},
		"is slow": {reason: "a call has a timeout", fault: simulator.Fault{Delay: time.Minute}, wantText: "the Reconciler did not respond within 2s", wantWait: interval},
		"returns no JSON, or no version/no JSON": {
			reason: "a proxy may answer with HTML", fault: simulator.Fault{Body: "<html>"}, wantText: could + "returned a response that is not the expected JSON", wantWait: interval,
		},
		"returns no JSON, or no version/no version": {
			reason: "the step has nothing to wait for", fault: simulator.Fault{Body: "{}"},
			wantText: "the Reconciler could not accept the Kyma configuration: its response has no version", wantWait: interval,
		},
		"400 with the text kubeconfig not accepted, because the runtime does not respond to it": {
			reason: "a new runtime may not respond yet", change: func(f *fixture) { f.kubeconfig = "none" },
			wantText: "the Reconciler cannot reach the runtime with its kubeconfig", wantWait: interval,
		},
		"401 or 403, of a gateway/401": {
			reason: "an operator can correct the address", fault: simulator.Fault{Status: http.StatusUnauthorized},
			wantText: "the Reconciler rejects the credentials with HTTP status 401" + credentials, wantWait: interval,
		},
		"401 or 403, of a gateway/403": {
			reason: "an operator can correct the address", fault: simulator.Fault{Status: http.StatusForbidden},
			wantText: "the Reconciler rejects the credentials with HTTP status 403" + credentials, wantWait: interval,
		},
		"429, 503 with Retry-After/429": {
			reason: "the pause of the system counts", fault: simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 42},
			wantText: could + "returned HTTP status 429 Too Many Requests", wantWait: 42 * time.Second,
		},
		"429, 503 with Retry-After/503": {
			reason: "at most five minutes", fault: simulator.Fault{Status: http.StatusServiceUnavailable, RetryAfter: 3600},
			wantText: could + "returned HTTP status 503 Service Unavailable", wantWait: 5 * time.Minute,
		},
		"408, 500 and other statuses above/408": {
			reason: "a gateway may have lost the request", fault: simulator.Fault{Status: http.StatusRequestTimeout},
			wantText: could + "returned HTTP status 408 Request Timeout", wantWait: interval,
		},
		"408, 500 and other statuses above/500": {
			reason: "the Reconciler may recover", fault: simulator.Fault{Status: http.StatusInternalServerError},
			wantText: could + "returned HTTP status 500 Internal Server Error", wantWait: interval,
		},
		"408, 500 and other statuses above/503": {
			reason: "an overloaded system can recover", fault: simulator.Fault{Status: http.StatusServiceUnavailable},
			wantText: could + "returned HTTP status 503 Service Unavailable", wantWait: interval,
		},
		"409, 400 and other statuses/409": {
			reason: "another attempt would be rejected as well", fault: simulator.Fault{Status: http.StatusConflict},
			wantText: could + "rejects the request with HTTP status 409 Conflict", wantKind: failure.Conflict,
		},
		"409, 400 and other statuses/400": {
			reason: "another attempt would be rejected as well", fault: simulator.Fault{Status: http.StatusBadRequest},
			wantText: could + "rejects the request with HTTP status 400 Bad Request", wantKind: failure.Permanent,
		},
		"409, 400 and other statuses/413": {
			reason: "a proxy accepts less", fault: simulator.Fault{Status: http.StatusRequestEntityTooLarge},
			wantText: could + "rejects the request with HTTP status 413 Request Entity Too Large", wantKind: failure.Permanent,
		},
		"the Provisioner issues no kubeconfig": {
			reason: "the stage retries the Provisioner", change: func(f *fixture) { f.kubeconfig = "" }, wantText: "the Provisioner is unreachable", wantKind: failure.Transient,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := newFixture(t)
			if c.change != nil {
				c.change(f)
			} else {
				c.fault.Times = lasting
				f.simulated.Inject(c.fault)
			}

			first, wait, err := f.Apply(t.Context(), newOperation(0), instance())
			if wait != c.wantWait || (err != nil) != (c.wantKind != "") || err != nil && !failure.Is(err, c.wantKind) {
				t.Fatalf("%s: runs again after %s, %v", c.reason, wait, err)
			}

			faulttable.Shows(t, "reconciler.md#registration", name, stepstest.Shown(first, err))

			if wait > 0 {
				c.wantText += ": gave up after " + window.String()
				_, wait, err = f.Apply(t.Context(), newOperation(window), instance())
			}

			if wait != 0 || failure.Of(err).Text != c.wantText {
				t.Errorf("%s: at the end, the step returns %s, %v, want %q", c.reason, wait, err, c.wantText)
			}

			if created := f.object().State == environment.OutsideCreating; created != !failure.Is(err, failure.Transient) {
				t.Errorf("%s: the object is recorded as %q", c.reason, f.object().State)
			}

			f.simulated.Reset()
			f.kubeconfig = kubeconfig

			after, wait, err := f.Apply(t.Context(), newOperation(0), instance())
			if err != nil || wait != 0 || after.Data.ConfigurationVersion != f.simulated.States()[runtimeID].ConfigurationVersion {
				t.Errorf("%s: afterwards, the step waits for version %d after %s, %v", c.reason, after.Data.ConfigurationVersion, wait, err)
			}

			want := environment.OutsideObject{
				InstanceID: "instance-1", System: environment.SystemReconciler, Kind: environment.KindCluster, Key: runtimeID, State: environment.OutsideCreated,
				Credential: environment.NewCredential(began, time.Time{}),
			}

			sent := f.simulated.Clusters()[runtimeID]
			if want.Configuration, err = sent.Encode(); err != nil || strings.Contains(want.Configuration.Reveal(), "secret-token") {
				t.Errorf("%s: the stored configuration is %q, %v", c.reason, want.Configuration.Reveal(), err)
			}

			if diff := cmp.Diff(want, f.object()); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
		})
	}
}

// TestRegistrationDuringRenewal checks that an operation sends nothing while a renewal of the kubeconfig can be in progress.
//
//faults:row reconciler.md#current-kubeconfigs an operation begins during a renewal
func TestRegistrationDuringRenewal(t *testing.T) {
	f := newFixture(t)
	f.records.Records = []environment.OutsideObject{{
		InstanceID: "instance-1", System: environment.SystemReconciler, Kind: environment.KindCluster, Key: runtimeID, State: environment.OutsideCreated,
		Credential: environment.Credential{RenewingUntil: began.Add(2 * time.Minute)},
	}}

	waiting, wait, err := f.Apply(t.Context(), newOperation(time.Minute), instance())
	if err != nil || wait != time.Minute || len(f.simulated.Operations()) > 0 {
		t.Errorf("the step runs again after %s, %v, with the calls %v", wait, err, f.simulated.Operations())
	}

	faulttable.Shows(t, "reconciler.md#current-kubeconfigs", "an operation begins during a renewal", stepstest.Shown(waiting, err))

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

	if _, _, err := f.Apply(t.Context(), newOperation(0), instance()); !failure.Is(err, failure.Transient) || len(f.simulated.Operations()) != 0 {
		t.Errorf("without its lease, the step calls %v, %v", f.simulated.Operations(), err)
	}
}

// TestKubeconfigIsRenewed checks that the kubeconfig of another operation replaces the one that the Reconciler has.
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

// TestFormerRuntime checks that the registration of an earlier runtime is removed if its removal was abandoned before.
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

// TestStatuses checks after which statuses the status is read again, and which statuses fail the operation.
//
//faults:table reconciler.md#installation
func TestStatuses(t *testing.T) {
	const (
		limit   = 2 * time.Hour
		polled  = 30 * time.Second
		retried = 10 * time.Minute
		failed  = time.Minute
		gaveUp  = "the Reconciler could not install Kyma: components istio"
		late    = "the Reconciler has not installed Kyma within 2h0m0s"
		rejects = "the Reconciler could not return the state of the runtime: it rejects the request with HTTP status "
	)

	failures := []reconciler.Failure{{Component: "istio", Reason: "no memory"}}

	cases := map[string]struct {
		reason   string
		status   reconciler.Status
		fault    simulator.Fault // of the request for the status
		elapsed  time.Duration
		wantWait time.Duration
		wantText string
		// removed reports that the step of a creation removes the runtime from the Reconciler.
		removed bool
	}{
		"reconcile_pending, reconciling/pending":                 {reason: "the Reconciler works", status: reconciler.Pending, wantWait: polled},
		"reconcile_pending, reconciling/reconciling":             {reason: "the Reconciler works", status: reconciler.Reconciling, wantWait: polled},
		"reconcile_error_retryable":                              {reason: "the Reconciler retries", status: reconciler.ErrorRetryable, wantWait: retried},
		"ready":                                                  {reason: "Kyma is installed", status: reconciler.Ready},
		"ready/late":                                             {reason: "also after the limit", status: reconciler.Ready, elapsed: limit},
		"error, reconcile_disabled, unknown/error":               {reason: "the Reconciler has given up", status: reconciler.Error, wantText: gaveUp},
		"error, reconcile_disabled, unknown/disabled":            {reason: "somebody has stopped it", status: reconciler.Disabled, wantText: gaveUp},
		"error, reconcile_disabled, unknown/unknown":             {reason: "nobody knows the status", status: "sleeping", wantText: gaveUp},
		"none: unreachable, or the response is lost/unreachable": {reason: "an outage can pass", fault: simulator.Fault{Unsent: true}, wantWait: failed},
		"none: unreachable, or the response is lost/lost":        {reason: "a lost response is repeated", fault: simulator.Fault{Lost: true}, wantWait: failed},
		"none: slow":                                 {reason: "a call has a timeout", fault: simulator.Fault{Delay: time.Minute}, wantWait: failed},
		"none: no JSON, or no status/no JSON":        {reason: "a proxy may answer with HTML", fault: simulator.Fault{Body: "<html>"}, wantWait: failed},
		"none: no JSON, or no status/no status":      {reason: "a response without a status", fault: simulator.Fault{Body: "{}"}, wantWait: failed},
		"none: 401, 403/401":                         {reason: "an operator can correct the address", fault: simulator.Fault{Status: http.StatusUnauthorized}, wantWait: failed},
		"none: 401, 403/403":                         {reason: "an operator can correct the address", fault: simulator.Fault{Status: http.StatusForbidden}, wantWait: failed},
		"none: 408, 500 and above/408":               {reason: "a gateway may have lost the request", fault: simulator.Fault{Status: http.StatusRequestTimeout}, wantWait: failed},
		"none: 408, 500 and above/500":               {reason: "the Reconciler may recover", fault: simulator.Fault{Status: http.StatusInternalServerError}, wantWait: failed},
		"none: 408, 500 and above/503":               {reason: "an overloaded system can recover", fault: simulator.Fault{Status: http.StatusServiceUnavailable}, wantWait: failed},
		"none: 429, 503 with Retry-After/429":        {reason: "the pause of the system counts", fault: simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 42}, wantWait: 42 * time.Second},
		"none: 429, 503 with Retry-After/503":        {reason: "at most five minutes", fault: simulator.Fault{Status: http.StatusServiceUnavailable, RetryAfter: 3600}, wantWait: 5 * time.Minute},
		"none: 404, 409, 400 and other statuses/404": {reason: "somebody has removed the runtime", fault: simulator.Fault{Status: http.StatusNotFound}, wantText: rejects + "404 Not Found"},
		"none: 404, 409, 400 and other statuses/409": {reason: "another attempt would be rejected as well", fault: simulator.Fault{Status: http.StatusConflict}, wantText: rejects + "409 Conflict"},
		"none: 404, 409, 400 and other statuses/400": {reason: "another attempt would be rejected as well", fault: simulator.Fault{Status: http.StatusBadRequest}, wantText: rejects + "400 Bad Request"},
		"any other after the limit/reconciling":      {reason: "the limit", status: reconciler.Reconciling, elapsed: limit, wantText: late, removed: true},
		"any other after the limit/unreachable":      {reason: "the limit of an outage", fault: simulator.Fault{Unsent: true}, elapsed: limit, wantText: late, removed: true},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for _, removes := range []bool{false, true} {
				f := newFixture(t)

				registered, _, err := f.Apply(t.Context(), newOperation(c.elapsed), instance())
				if err != nil {
					t.Fatal(err)
				}

				f.simulated.Freeze(runtimeID, c.status, failures...)

				if c.fault != (simulator.Fault{}) {
					c.fault.Operation, c.fault.Times = "getStatus", -1
					f.simulated.Freeze(runtimeID, reconciler.Ready)
					f.simulated.Inject(c.fault)
				}

				step := f.Await
				if removes {
					step = f.AwaitOrRemove
				}

				after, wait, err := step(t.Context(), registered, logging.Discard())
				if wait != c.wantWait || (err != nil) != (c.wantText != "") || err != nil && (failure.Of(err).Text != c.wantText || retryable(err)) {
					t.Errorf("%s: runs again after %s, %v", c.reason, wait, err)
				}

				if !removes || !c.removed { // after the removal, the creation fails as an update does
					faulttable.Shows(t, "reconciler.md#installation", name, stepstest.Shown(after, err))
				}

				if err != nil && c.fault == (simulator.Fault{}) && !strings.Contains(failure.Of(err).Detail, "istio: no memory") {
					t.Errorf("%s: operators see %q", c.reason, failure.Of(err).Detail)
				}

				if removed := f.simulated.States()[runtimeID].Status == reconciler.DeletePending; removed != (removes && c.removed) ||
					removed != (f.object().State == environment.OutsideRemoving) {
					t.Errorf("%s: removed %t, recorded as %s", c.reason, removed, f.object().State)
				}
			}
		})
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

// TestOff checks that steps without a Reconciler fail.
//
//faults:row reconciler.md#registration is turned off
//faults:row reconciler.md#installation none: the Reconciler is turned off
func TestOff(t *testing.T) {
	f := newFixture(t)
	f.Client = nil

	_, _, applied := f.Apply(t.Context(), newOperation(0), instance())
	_, _, awaited := f.Await(t.Context(), newOperation(0), logging.Discard())

	for _, err := range []error{applied, awaited} {
		if !failure.Is(err, failure.Permanent) || failure.Of(err).Text != "the Reconciler is turned off: an operator must set APP_RECONCILER_URL" {
			t.Errorf("got %v", err)
		}
	}

	faulttable.Shows(t, "reconciler.md#registration", "is turned off", failure.Of(applied).Text)
	faulttable.Shows(t, "reconciler.md#installation", "none: the Reconciler is turned off", failure.Of(awaited).Text)
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
