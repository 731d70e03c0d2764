package deprovisioning

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecontrolplane"
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

// kymaStates returns the recorded states of the objects, by kind.
func kymaStates(records *stepstest.Objects) map[string]environment.OutsideState {
	states := map[string]environment.OutsideState{}
	for _, object := range records.Records {
		states[object.Kind] = object.State
	}

	return states
}

// handedOver returns a control plane with the two objects of a runtime, their records, and the three steps.
func handedOver(t *testing.T) (*fakecontrolplane.ControlPlane, *stepstest.Objects, []Step) {
	t.Helper()

	plane, records := fakecontrolplane.New(), stepstest.New()
	server := httptest.NewServer(plane)
	t.Cleanup(server.Close)

	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}

	client := lifecyclemanager.New(fakecontrolplane.Transport(address), 2*time.Second)

	objects, err := lifecyclemanager.ObjectsOf(withRuntime("r-1"), lifecyclemanager.Settings{}, "kcp-system", "")
	if err != nil {
		t.Fatal(err)
	}

	for kind, ref := range map[string]lifecyclemanager.Ref{environment.KindKymaResource: objects.Kyma, environment.KindKubeconfig: objects.Secret} {
		records.Records = append(records.Records, environment.OutsideObject{
			InstanceID: instanceID, System: environment.SystemLifecycleManager, Kind: kind, Key: ref.String(), State: environment.OutsideCreated,
		})
	}

	if err := client.ApplySecret(t.Context(), objects, "kubeconfig"); err != nil {
		t.Fatal(err)
	}

	if err := client.ApplyKyma(t.Context(), objects); err != nil {
		t.Fatal(err)
	}

	return plane, records, kymaSteps(client, records)
}

func kymaSteps(client LifecycleManager, records Objects) []Step {
	kyma := kymaObject{client: client, objects: records, kind: environment.KindKymaResource}
	kubeconfig := kyma
	kubeconfig.kind = environment.KindKubeconfig

	return []Step{deleteKyma{kyma}, checkKymaDeleted{kyma}, deleteKubeconfig{kubeconfig}}
}

func TestDeletionOfKymaResource(t *testing.T) {
	plane, records, steps := handedOver(t)
	deletion, check, kubeconfig := steps[0], steps[1], steps[2]
	operation := newOperation(environment.Data{Instance: withRuntime("r-1")})

	done(t, deletion, operation)
	done(t, deletion, operation)

	if _, wait, err := run(t, check, operation); err != nil || wait != kymaInterval {
		t.Errorf("while Lifecycle Manager removes Kyma, the step runs again after %s, %v", wait, err)
	}

	for _, step := range []Step{check, check, kubeconfig, kubeconfig, deletion} { // each can run again
		done(t, step, operation)
	}

	if left := plane.Holds(); len(left)+len(records.Records) > 0 {
		t.Errorf("left: %v, %v", left, records.Lines())
	}
}

// TestDeletionDuringRestoration checks that the Secret is deleted only after a running restoration, which would otherwise create it
// again.
//
//faults:row lifecycle-manager.md#removal a renewal creates the missing Secret
func TestDeletionDuringRestoration(t *testing.T) {
	plane, records, steps := handedOver(t)
	operation := newOperation(environment.Data{Instance: withRuntime("r-1")})

	for i := range records.Records {
		records.Records[i].Credential.RenewingUntil = began.Add(time.Minute)
	}

	after, wait, err := run(t, steps[2], operation)
	if err != nil || wait != kymaInterval || len(plane.Objects("Secret")) != 1 {
		t.Fatalf("during the restoration, the step runs again after %s, %v, with %d Secrets", wait, err, len(plane.Objects("Secret")))
	}

	faulttable.Shows(t, "lifecycle-manager.md#removal", "a renewal creates the missing Secret", stepstest.Shown(after, err))

	late := process.NewFailingOperation(operation.Record, operation.Data, began, began.Add(time.Minute))
	if _, wait, err := steps[2].Run(t.Context(), late, logging.Discard()); err != nil || wait > 0 || len(plane.Objects("Secret")) != 0 {
		t.Errorf("after the restoration, the step runs again after %s, %v, with %d Secrets", wait, err, len(plane.Objects("Secret")))
	}
}

// TestDeletionWithoutCRD removes a Kyma resource from a control plane that no longer serves its kind.
func TestDeletionWithoutCRD(t *testing.T) {
	plane, records, steps := handedOver(t)
	plane.Inject(simulator.Fault{Status: http.StatusNotFound, Body: "404 page not found\n", Times: 2})

	for _, step := range steps[:2] {
		if _, wait, err := run(t, step, newOperation(environment.Data{Instance: withRuntime("r-1")})); err != nil || wait != 0 {
			t.Fatalf("%s runs again after %s, %v", step.Name(), wait, err)
		}
	}

	if kyma := records.Of(environment.KindKymaResource); kyma.State != "" {
		t.Errorf("the Kyma resource is still recorded: %v", kyma)
	}
}

// TestDeletionFaults checks after which faults a step is repeated, and the recorded state after the window.
//
//faults:table lifecycle-manager.md#removal
func TestDeletionFaults(t *testing.T) {
	const (
		lasting  = -1
		interval = 10 * time.Second
		get      = "getKyma"
		remove   = "deleteSecret"
	)

	created, left := environment.OutsideCreated, environment.OutsideLeftOver

	cases := map[string]struct {
		reason string
		fault  simulator.Fault
		// step is the step that gives up. kyma and kubeconfig are the recorded states afterwards.
		step             int
		wantWait         time.Duration
		kyma, kubeconfig environment.OutsideState
	}{
		"is unreachable, or its response is lost/unreachable": {"an outage can pass", simulator.Fault{Unsent: true}, 0, interval, left, created},
		"is slow":                                      {"a call has a timeout", simulator.Fault{Delay: time.Minute}, 0, interval, left, created},
		"returns no JSON/deletion":                     {"a proxy may answer with HTML", simulator.Fault{Body: "<html>"}, 0, interval, left, created},
		"returns no JSON/read":                         {"a proxy may answer with HTML", simulator.Fault{Operation: get, Body: "<html>"}, 1, interval, left, created},
		"returns no JSON/404":                          {"a proxy without a backend does not know the object", simulator.Fault{Status: http.StatusNotFound, Body: "<html>"}, 0, interval, left, created},
		"returns no JSON/Secret":                       {"a proxy may answer with HTML", simulator.Fault{Operation: remove, Body: "<html>"}, 2, interval, "", left},
		"is unreachable, or its response is lost/lost": {"the deletion is repeated", simulator.Fault{Lost: true}, 0, interval, left, created},
		"429, 503 with Retry-After/429":                {"the pause of the system counts", simulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 42}, 0, 42 * time.Second, left, created},
		"429, 503 with Retry-After/503":                {"at most five minutes", simulator.Fault{Operation: get, Status: http.StatusServiceUnavailable, RetryAfter: 3600}, 1, 5 * time.Minute, left, created},
		"400, 409 and other statuses/400":              {"the check repeats every error", simulator.Fault{Operation: get, Status: http.StatusBadRequest}, 1, interval, left, created},
		"401, 403/401":                                 {"an operator can correct the credentials", simulator.Fault{Status: http.StatusUnauthorized}, 0, interval, left, created},
		"401, 403/403":                                 {"an operator can correct permissions", simulator.Fault{Status: http.StatusForbidden}, 0, interval, left, created},
		"400, 409 and other statuses/409":              {"a deletion repeats every error", simulator.Fault{Status: http.StatusConflict}, 0, interval, left, created},
		"408, 500 and above/500":                       {"the Secret is deleted after the runtime", simulator.Fault{Operation: remove, Status: http.StatusInternalServerError}, 2, interval, "", left},
		"408, 500 and above/503":                       {"an overloaded system can recover", simulator.Fault{Status: http.StatusServiceUnavailable}, 0, interval, left, created},
		"408, 500 and above/408":                       {"a gateway may have lost the request", simulator.Fault{Status: http.StatusRequestTimeout}, 0, interval, left, created},
		"404":                                          {"the objects are gone", simulator.Fault{}, 3, 0, "", ""},
		"still has the Kyma resource":                  {"Lifecycle Manager may never remove the resource", simulator.Fault{}, 1, interval, left, created},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			plane, records, steps := handedOver(t)
			operation := newOperation(environment.Data{Instance: withRuntime("r-1")})

			switch {
			case c.fault != (simulator.Fault{}):
				c.fault.Times = lasting
				plane.Inject(c.fault)
			case c.wantWait > 0:
				plane.Hold("Deleting", "a module is stuck", true)
			default:
				plane.Remove("Secret", "kcp-system", "kubeconfig-r-1")
				plane.Remove("Kyma", "kcp-system", "r-1")
			}

			for i, step := range steps {
				after, wait, err := run(t, step, operation)
				if i == 1 && i != c.step && wait > 0 { // the first read of a deleted resource still finds it
					after, wait, err = run(t, step, operation)
				}

				if i != c.step {
					if err != nil || wait > 0 {
						t.Fatalf("%s: %s runs again after %s, %v", c.reason, step.Name(), wait, err)
					}

					continue
				}

				if err != nil || wait != c.wantWait {
					t.Fatalf("%s: %s runs again after %s, %v", c.reason, step.Name(), wait, err)
				}

				faulttable.Shows(t, "lifecycle-manager.md#removal", name, stepstest.Shown(after, err))

				late := process.NewFailingOperation(operation.Record, operation.Data, began, began.Add(5*time.Minute))
				if _, wait, err = step.Run(t.Context(), late, logging.Discard()); err != nil || wait > 0 {
					t.Fatalf("%s: after the limit, %s runs again after %s, %v", c.reason, step.Name(), wait, err)
				}

				break
			}

			want := map[string]environment.OutsideState{environment.KindKymaResource: c.kyma, environment.KindKubeconfig: c.kubeconfig}
			maps.DeleteFunc(want, func(_ string, state environment.OutsideState) bool { return state == "" })

			if diff := cmp.Diff(want, kymaStates(records)); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}

			// A cleanup completes the removal. Without the Secret, Lifecycle Manager removes the resource without waiting for the modules.
			plane.Reset()

			for _, step := range slices.Concat(steps, steps, steps) {
				if _, wait, err := run(t, step, operation); err != nil || wait > time.Minute {
					t.Fatalf("cleanup: %s runs again after %s, %v", step.Name(), wait, err)
				}
			}

			if rest := plane.Holds(); len(rest)+len(records.Records) > 0 {
				t.Errorf("%s: after the cleanup: %v, %v", c.reason, rest, records.Lines())
			}
		})
	}
}

// TestDeletionWithoutLifecycleManager checks what stays if nobody can remove the objects.
//
//faults:row lifecycle-manager.md#removal Lifecycle Manager is turned off
func TestDeletionWithoutLifecycleManager(t *testing.T) {
	plane, records, _ := handedOver(t)
	operation := newOperation(environment.Data{Instance: withRuntime("r-1")})

	const table, row = "lifecycle-manager.md#removal", "Lifecycle Manager is turned off"

	for i, step := range kymaSteps(nil, records) {
		if after := done(t, step, operation); i != 1 { // the check has nothing to wait for
			faulttable.Shows(t, table, row, stepstest.Shown(after, nil))
		}
	}

	want := map[string]environment.OutsideState{
		environment.KindKymaResource: environment.OutsideLeftOver, environment.KindKubeconfig: environment.OutsideLeftOver,
	}
	if diff := cmp.Diff(want, kymaStates(records)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	if calls := plane.Operations(); len(calls) != 2 {
		t.Errorf("the control plane was called: %v", calls)
	}

	empty := stepstest.New()
	for _, step := range kymaSteps(nil, empty) { // an instance without Lifecycle Manager
		done(t, step, operation)
	}
}
