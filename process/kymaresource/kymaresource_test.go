package kymaresource

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecontrolplane"
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

const (
	limit      = time.Hour
	kubeconfig = "the kubeconfig of the runtime"
	lasting    = -1
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fixture has the dependencies of the steps: a simulated control plane, and the records of one instance.
type fixture struct {
	*fakecontrolplane.ControlPlane

	records  *stepstest.Objects
	instance environment.Instance
	settings lifecyclemanager.Settings
	options  Options
}

func newFixture(t *testing.T) *fixture {
	t.Helper()

	f := &fixture{
		ControlPlane: fakecontrolplane.New(), records: stepstest.New(),
		instance: environment.Instance{
			ID: "instance-1", RuntimeID: "R-1", PlanName: "aws", GlobalAccountID: "an account", Provider: "aws", ShootName: "c-1",
			Request: environment.Request{Cluster: environment.Cluster{Kyma: &environment.Kyma{Installer: environment.InstallerLifecycleManager}}},
		},
		settings: lifecyclemanager.Settings{Channel: "fast", Modules: []lifecyclemanager.Module{{Name: "eventing"}}},
	}

	server := httptest.NewServer(f)
	t.Cleanup(server.Close)

	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}

	f.options = Options{
		Client: lifecyclemanager.New(fakecontrolplane.Transport(address), 2*time.Second), Kyma: f, Access: f, Records: f.records, Limit: limit,
		Instance: func(context.Context, Operation) (environment.Instance, error) { return f.instance, nil },
	}

	return f
}

func (f *fixture) Objects(_ context.Context, instance environment.Instance) (lifecyclemanager.Objects, error) {
	return lifecyclemanager.ObjectsOf(instance, f.settings, "kcp-system", "example.com")
}

func (f *fixture) AdminKubeconfig(context.Context, environment.Instance) (secret.String, error) {
	return kubeconfig, nil
}

// objects returns the names of the objects in the control plane.
func (f *fixture) objects() []string {
	var names []string

	for _, kind := range []string{"Secret", "Kyma"} {
		for _, object := range f.ControlPlane.Objects(kind) {
			names = append(names, kind+" "+object.GetNamespace()+"/"+object.GetName())
		}
	}

	return names
}

func operation() Operation {
	return process.NewOperation(process.Record{ID: "op-1", InstanceID: "instance-1"}, environment.Data{}, began)
}

// done runs steps that must be done.
func (f *fixture) done(t *testing.T, steps ...Step) Operation {
	t.Helper()

	after := operation()

	for _, step := range steps {
		var (
			wait time.Duration
			err  error
		)

		if after, wait, err = step.Run(t.Context(), after, logging.Discard()); err != nil || wait > 0 {
			t.Fatalf("%s: runs again after %s, %v", step.Name(), wait, err)
		}
	}

	return after
}

func TestHandOver(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	sync, apply := SyncKubeconfig(f.options), ApplyKyma(f.options)

	f.done(t, sync, apply, sync, apply) // twice, because a stage can run again

	if diff := cmp.Diff([]string{"Secret kcp-system/kubeconfig-r-1", "Kyma kcp-system/r-1"}, f.objects()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	if data, _, _ := unstructured.NestedString(f.ControlPlane.Objects("Secret")[0].Object, "data", "config"); data != "dGhlIGt1YmVjb25maWcgb2YgdGhlIHJ1bnRpbWU=" {
		t.Errorf("the Secret has %q", data)
	}

	kyma := f.ControlPlane.Objects("Kyma")[0]
	if diff := cmp.Diff([]string{"eventing"}, fakecontrolplane.Modules(kyma)); diff != "" {
		t.Errorf("modules: -want +got\n%s", diff)
	}

	labels := kyma.GetLabels()
	if labels["kyma-project.io/instance-id"] != "instance-1" || labels["kyma-project.io/runtime-id"] != "R-1" ||
		labels["operator.kyma-project.io/kyma-name"] != "r-1" || labels["operator.kyma-project.io/managed-by"] != "lifecycle-manager" {
		t.Errorf("labels: %v", labels)
	}

	for _, kind := range []string{environment.KindKubeconfig, environment.KindKymaResource} {
		if f.records.Of(kind).State != environment.OutsideCreated {
			t.Errorf("the %s is recorded as %q", kind, f.records.Of(kind).State)
		}
	}

	check := CheckKyma(f.options)
	if _, wait, err := check.Run(t.Context(), operation(), logging.Discard()); err != nil || wait != checkInterval {
		t.Errorf("while Lifecycle Manager works, the step runs again after %s, %v", wait, err)
	}

	if after := f.done(t, check); after.Description != "Kyma is installed" {
		t.Errorf("the description is %q", after.Description)
	}

	f.settings.Modules = []lifecyclemanager.Module{}
	f.done(t, apply)

	if modules := fakecontrolplane.Modules(f.ControlPlane.Objects("Kyma")[0]); len(modules) > 0 {
		t.Errorf("after all modules were removed, the resource has %v", modules)
	}
}

// TestCallFaults checks the message after each fault of a write, whether the write is repeated, and that the object is recorded before it.
// Unless the control plane requests a pause, the policy of the stage determines the pause: see TestRepeatedStages of package provisioning.
//
//faults:table lifecycle-manager.md#writes
func TestCallFaults(t *testing.T) {
	t.Parallel()

	const (
		credentials = ": an operator must correct APP_CONTROL_PLANE_KUBECONFIG_PATH and the permissions of its user"
		rejects     = "the control plane rejects the credentials with HTTP status "
		could       = "the control plane could not ACTION: "
		missing     = "the control plane has no RESOURCE or no namespace kcp-system: an operator must install Lifecycle Manager, or correct the Kyma template"
	)

	cases := map[string]struct {
		fault    simulator.Fault
		wantText string
		wantWait time.Duration // zero: the step returns the error
		wantKind failure.Kind
	}{
		"is unreachable, or its response is lost/unreachable": {simulator.Fault{Unsent: true}, "the control plane cannot be reached", 0, failure.Transient},
		"is unreachable, or its response is lost/lost":        {simulator.Fault{Lost: true}, "the control plane cannot be reached", 0, failure.Transient},
		"is slow":         {simulator.Fault{Delay: time.Minute}, "the control plane did not respond within 2s", 0, failure.Transient},
		"returns no JSON": {simulator.Fault{Body: "<html>"}, could + "it returned a response that is not the expected JSON", 0, failure.Transient},
		"401, 403/401":    {simulator.Fault{Status: http.StatusUnauthorized}, rejects + "401" + credentials, 0, failure.Transient},
		"401, 403/403":    {simulator.Fault{Status: http.StatusForbidden}, rejects + "403" + credentials, 0, failure.Transient},
		"404: the CRD or the namespace is missing": {simulator.Fault{Status: http.StatusNotFound}, missing, 0, failure.Transient},
		"409": {simulator.Fault{Status: http.StatusConflict}, could +
			"the object was changed at the same time", 0, failure.Transient},
		"429, 503 with Retry-After/429":         {simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 42}, could + "it returned HTTP status 429 Too Many Requests", 42 * time.Second, failure.Permanent},
		"429, 503 with Retry-After/503":         {simulator.Fault{Status: http.StatusServiceUnavailable, RetryAfter: 3600}, could + "it returned HTTP status 503 Service Unavailable", 5 * time.Minute, failure.Permanent},
		"408, 429, 500 and above/408":           {simulator.Fault{Status: http.StatusRequestTimeout}, could + "it returned HTTP status 408 Request Timeout", 0, failure.Transient},
		"408, 429, 500 and above/429":           {simulator.Fault{Status: http.StatusTooManyRequests}, could + "it returned HTTP status 429 Too Many Requests", 0, failure.Transient},
		"408, 429, 500 and above/500":           {simulator.Fault{Status: http.StatusInternalServerError}, could + "it returned HTTP status 500 Internal Server Error", 0, failure.Transient},
		"408, 429, 500 and above/503":           {simulator.Fault{Status: http.StatusServiceUnavailable}, could + "it returned HTTP status 503 Service Unavailable", 0, failure.Transient},
		"400, 422: the resource is invalid/400": {simulator.Fault{Status: http.StatusBadRequest}, could + "it rejects the request with HTTP status 400 Bad Request", 0, failure.Permanent},
		"400, 422: the resource is invalid/422": {simulator.Fault{Status: http.StatusUnprocessableEntity}, could + "it rejects the request with HTTP status 422 Unprocessable Entity", 0, failure.Permanent},
	}

	steps := []struct {
		create func(Options) Step
		kind   string
		texts  *strings.Replacer
	}{
		{SyncKubeconfig, environment.KindKubeconfig, strings.NewReplacer("ACTION", "write the Secret with the kubeconfig of the runtime", "RESOURCE", "secrets")},
		{ApplyKyma, environment.KindKymaResource, strings.NewReplacer("ACTION", "apply the Kyma resource of the runtime", "RESOURCE", "kymas.operator.kyma-project.io")},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for _, tested := range steps {
				f := newFixture(t)
				c.fault.Times = lasting
				f.Inject(c.fault)

				step, want := tested.create(f.options), tested.texts.Replace(c.wantText)

				after, wait, err := step.Run(t.Context(), operation(), logging.Discard())
				if wait != c.wantWait {
					t.Errorf("%s runs again after %s, %v", step.Name(), wait, err)
				}

				faulttable.Shows(t, "lifecycle-manager.md#writes", name, stepstest.Shown(after, err))

				if wait > 0 {
					want += ": gave up after 1h0m0s"
					_, _, err = step.Run(t.Context(), failing(time.Hour), logging.Discard())
				}

				if failure.Of(err).Kind != c.wantKind || failure.Of(err).Text != want {
					t.Errorf("%s returns %v of kind %s, want %q", step.Name(), err, failure.Of(err).Kind, want)
				}

				if state := f.records.Of(tested.kind).State; state != environment.OutsideCreating {
					t.Errorf("the object is recorded as %q", state)
				}

				f.Reset()
				f.done(t, step)

				if got := f.objects(); len(got) != 1 || f.records.Of(tested.kind).State != environment.OutsideCreated {
					t.Errorf("after the fault: %v", got)
				}
			}
		})
	}
}

// failing returns an operation whose step has been failing for the given time.
func failing(duration time.Duration) Operation {
	return process.NewFailingOperation(process.Record{ID: "op-1", InstanceID: "instance-1"}, environment.Data{}, began, began.Add(duration))
}

// TestStates checks which states end the step. A waiting step shows the same state as its error after the limit.
//
//faults:table lifecycle-manager.md#states
func TestStates(t *testing.T) {
	t.Parallel()

	const (
		polled = 10 * time.Second
		late   = "Lifecycle Manager has not installed Kyma within 1h0m0s"
	)

	cases := map[string]struct {
		state, message string
		since          time.Duration
		want           time.Duration // zero: done
		wantText       string        // of the error
	}{
		"none, Processing/none":           {"none", "", 0, polled, ""},
		"none, Processing/processing":     {"Processing", "", 0, polled, ""},
		"Error":                           {"Error", "no space left", 0, polled, ""},
		"Deleting, unknown states/delete": {"Deleting", "", 0, polled, ""},
		"Deleting, unknown states/other":  {"Sleeping", "", 0, polled, ""},
		"Ready/in time":                   {"Ready", "", 0, 0, ""},
		"Ready/late":                      {"Ready", "", limit, 0, ""},
		"Warning, Unmanaged/warning":      {"Warning", "a user has to act", 0, 0, ""},
		"Warning, Unmanaged/unmanaged":    {"Unmanaged", "", 0, 0, ""},
		"any of the above after APP_LIFECYCLE_MANAGER_READY_TIMEOUT/none":       {"none", "", limit, 0, late},
		"any of the above after APP_LIFECYCLE_MANAGER_READY_TIMEOUT/processing": {"Processing", "", limit, 0, late},
		"any of the above after APP_LIFECYCLE_MANAGER_READY_TIMEOUT/error":      {"Error", "no space left", limit, 0, late},
		"any of the above after APP_LIFECYCLE_MANAGER_READY_TIMEOUT/deleting":   {"Deleting", "", limit, 0, late},
		"any of the above after APP_LIFECYCLE_MANAGER_READY_TIMEOUT/other":      {"Sleeping", "", limit, 0, late},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := newFixture(t)
			f.done(t, SyncKubeconfig(f.options), ApplyKyma(f.options))

			shown := "Lifecycle Manager reports the state " + c.state
			if c.state == "none" {
				shown = "Lifecycle Manager has not reported a state yet"
				f.Inject(simulator.Fault{Operation: "getKyma", Body: "{}", Times: lasting})
			} else {
				f.Hold(c.state, c.message, false)
			}

			after, wait, err := CheckKyma(f.options).Run(t.Context(), failing(c.since), logging.Discard())
			if wait != c.want || (err != nil) != (c.wantText != "") {
				t.Fatalf("runs again after %s, %v", wait, err)
			}

			faulttable.Shows(t, "lifecycle-manager.md#states", name, stepstest.Shown(after, err))

			if err == nil {
				return
			}

			if ferr := failure.Of(err); ferr.Text != c.wantText || ferr.Kind != failure.Permanent || !strings.Contains(ferr.Detail, shown) ||
				!strings.Contains(ferr.Detail, c.message) {
				t.Errorf("got %q with %q", ferr.Text, ferr.Detail)
			}
		})
	}
}

// TestUnreadable checks the message after each fault of a read, and whether the fault ends the step.
//
//faults:table lifecycle-manager.md#states
func TestUnreadable(t *testing.T) {
	t.Parallel()

	const (
		credentials = ": an operator must correct APP_CONTROL_PLANE_KUBECONFIG_PATH and the permissions of its user"
		could       = "the control plane could not read the Kyma resource of the runtime: it "
	)

	cases := map[string]struct {
		fault    simulator.Fault
		wantText string
		wantWait time.Duration // zero: the step returns the error
		wantKind failure.Kind
	}{
		"unreadable: unreachable, or the response is lost/unreachable": {simulator.Fault{Unsent: true}, "the control plane cannot be reached", 0, failure.Transient},
		"unreadable: slow":    {simulator.Fault{Delay: time.Minute}, "the control plane did not respond within 2s", 0, failure.Transient},
		"unreadable: no JSON": {simulator.Fault{Body: "<html>"}, could + "returned a response that is not the expected JSON", 0, failure.Transient},
		"unreadable: unreachable, or the response is lost/lost": {simulator.Fault{Lost: true}, "the control plane cannot be reached", 0, failure.Transient},
		"unreadable: 401, 403/401":                              {simulator.Fault{Status: http.StatusUnauthorized}, "the control plane rejects the credentials with HTTP status 401" + credentials, 0, failure.Transient},
		"unreadable: 401, 403/403":                              {simulator.Fault{Status: http.StatusForbidden}, "the control plane rejects the credentials with HTTP status 403" + credentials, 0, failure.Transient},
		"unreadable: 408, 429, 500 and above/408":               {simulator.Fault{Status: http.StatusRequestTimeout}, could + "returned HTTP status 408 Request Timeout", 0, failure.Transient},
		"unreadable: 408, 429, 500 and above/429":               {simulator.Fault{Status: http.StatusTooManyRequests}, could + "returned HTTP status 429 Too Many Requests", 0, failure.Transient},
		"unreadable: 408, 429, 500 and above/500":               {simulator.Fault{Status: http.StatusInternalServerError}, could + "returned HTTP status 500 Internal Server Error", 0, failure.Transient},
		"unreadable: 429, 503 with Retry-After/429":             {simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 42}, could + "returned HTTP status 429 Too Many Requests", 42 * time.Second, failure.Permanent},
		"unreadable: 429, 503 with Retry-After/503":             {simulator.Fault{Status: http.StatusServiceUnavailable, RetryAfter: 3600}, could + "returned HTTP status 503 Service Unavailable", 5 * time.Minute, failure.Permanent},
		"unreadable: 400, 409 and other statuses/400":           {simulator.Fault{Status: http.StatusBadRequest}, could + "rejects the request with HTTP status 400 Bad Request", 0, failure.Permanent},
		"unreadable: 400, 409 and other statuses/409":           {simulator.Fault{Status: http.StatusConflict}, could + "rejects the request with HTTP status 409 Conflict", 0, failure.Conflict},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := newFixture(t)
			f.done(t, ApplyKyma(f.options))

			c.fault.Times = lasting
			f.Inject(c.fault)

			check := CheckKyma(f.options)

			after, wait, err := check.Run(t.Context(), operation(), logging.Discard())
			if wait != c.wantWait {
				t.Errorf("runs again after %s, %v", wait, err)
			}

			faulttable.Shows(t, "lifecycle-manager.md#states", name, stepstest.Shown(after, err))

			if wait > 0 {
				c.wantText += ": gave up after 1h0m0s"
				_, _, err = check.Run(t.Context(), failing(time.Hour), logging.Discard())
			}

			if failure.Of(err).Kind != c.wantKind || failure.Of(err).Text != c.wantText {
				t.Errorf("got %v of kind %s, want %q", err, failure.Of(err).Kind, c.wantText)
			}
		})
	}
}

// TestMissingResource removes the Kyma resource while the step waits.
//
//faults:row lifecycle-manager.md#states the resource is missing
func TestMissingResource(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	f.done(t, CheckKyma(f.options)) // an operator has skipped Apply_Kyma
	f.done(t, ApplyKyma(f.options))
	f.Remove("Kyma", "kcp-system", "r-1")

	after, wait, err := CheckKyma(f.options).Run(t.Context(), operation(), logging.Discard())
	if err != nil || wait != checkInterval {
		t.Errorf("a deleted resource: runs again after %s, %v", wait, err)
	}

	faulttable.Shows(t, "lifecycle-manager.md#states", "the resource is missing", stepstest.Shown(after, err))

	late := process.NewFailingOperation(process.Record{ID: "op-1", InstanceID: "instance-1"}, environment.Data{}, began, began.Add(limit))
	if _, _, err := CheckKyma(f.options).Run(t.Context(), late, logging.Discard()); err == nil || !strings.Contains(failure.Of(err).Text, "somebody has deleted it") {
		t.Errorf("a deleted resource, after the limit: %v", err)
	}
}

func TestReplacedObjects(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	f.done(t, SyncKubeconfig(f.options), ApplyKyma(f.options))

	f.settings.Template = "{apiVersion: operator.kyma-project.io/v1beta2, kind: Kyma, metadata: {namespace: elsewhere}}"
	if _, _, err := ApplyKyma(f.options).Run(t.Context(), operation(), logging.Discard()); !failure.Is(err, failure.Permanent) ||
		!strings.Contains(err.Error(), "restore the earlier template") {
		t.Errorf("a template with another namespace: %v", err)
	}

	f.settings.Template, f.instance.RuntimeID = "", "r-2" // resumed after a suspension that left the objects
	f.done(t, SyncKubeconfig(f.options), ApplyKyma(f.options), readDeleted(f))

	if diff := cmp.Diff([]string{"Secret kcp-system/kubeconfig-r-2", "Kyma kcp-system/r-2"}, f.objects()); diff != "" {
		t.Errorf("objects of a former runtime: -want +got\n%s", diff)
	}
}

// readDeleted returns a step that reads the deleted resource once, which lets Lifecycle Manager remove it.
func readDeleted(f *fixture) Step {
	return process.Action("Read", "", func(ctx context.Context, _ Operation) error {
		former := f.ControlPlane.Objects("Kyma")[0]
		resource, err := lifecyclemanager.ParseRef("kymas.v1beta2.operator.kyma-project.io/kcp-system/" + former.GetName())

		if err == nil {
			_, err = f.options.Client.Status(ctx, resource)
		}

		return err
	})
}

func TestSwitchedOffOrLost(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	f.records.Lost = true

	for _, step := range []Step{SyncKubeconfig(f.options), ApplyKyma(f.options)} {
		if _, _, err := step.Run(t.Context(), operation(), logging.Discard()); !failure.Is(err, failure.Transient) {
			t.Errorf("%s without its lease returns %v", step.Name(), err)
		}
	}

	if calls := f.Calls(); len(calls) > 0 {
		t.Errorf("the control plane was called: %v", calls)
	}

	f.options.Client = nil
	if _, _, err := ApplyKyma(f.options).Run(t.Context(), operation(), logging.Discard()); !failure.Is(err, failure.Permanent) ||
		!strings.Contains(err.Error(), "APP_LIFECYCLE_MANAGER_ENABLED") {
		t.Errorf("with Lifecycle Manager turned off: %v", err)
	}
}
