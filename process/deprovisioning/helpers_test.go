package deprovisioning

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

const (
	tenant     = "tenant-1"
	instanceID = "instance-1"
	// provisioning is the ID of the operation that ordered the runtime. removal is the ID of the tested operation.
	provisioning = "op-1"
	removal      = "op-2"

	pace = 7 * time.Second
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var errLost = failure.New(failure.Transient, "the response was lost")

type runtimeOrder struct {
	instance     environment.Instance
	targetSecret string
	earlier      []string
}

// fixture has the dependencies of the steps: a Provisioner with idempotency keys, and the rows of the broker. A fault can be
// injected into one of the calls.
type fixture struct {
	past environment.Data // the data of the provisioning

	runtimes map[string]string // the runtimes that exist, by the key of their order
	orders   map[string]bool   // the keys of all orders
	removals map[string]string // the Provisioner's operations, by the runtime that each removes
	recorded string            // the runtime in the instance's row
	rows     int               // rows of the instance
	// suspended reports whether the instance was suspended. change is the update that was recorded with the suspension.
	suspended bool
	change    *environment.Update
	left      []string // the steps that the effect has recorded as not completed
	// user is the ID of the instance that uses the runtime with the ID used. undecided makes it unknown whether there is one.
	user, used string
	undecided  bool

	calls []string
	// broken is the number of the call with the fault, counted from 1. The fault loses the response, or the call itself if
	// unsent is set.
	broken int
	unsent bool

	// provision and deprovision, if set, are the errors that the Provisioner returns for orders and removals.
	provision, deprovision error
	order                  runtimeOrder
	callers                []provisionerclient.Caller
}

// newFixture returns a fixture in which the provisioning of the instance has the given data.
func newFixture(past environment.Data) *fixture {
	return &fixture{past: past, runtimes: map[string]string{}, orders: map[string]bool{}, removals: map[string]string{}, rows: 1}
}

// call records a call and runs its effect. The call whose number is w.broken fails with errLost. If w.unsent is set, that call has
// no effect.
func (w *fixture) call(name string, effect func()) error {
	w.calls = append(w.calls, name)

	faulty := len(w.calls) == w.broken
	if !faulty || !w.unsent {
		effect()
	}

	if faulty {
		return errLost
	}

	return nil
}

func (w *fixture) OrderRuntime(_ context.Context, caller provisionerclient.Caller, instance environment.Instance, targetSecret string,
	earlier ...string,
) (provisionerclient.Operation, error) {
	if err := provisionerclient.CheckOrder(instance); err != nil {
		return provisionerclient.Operation{}, err
	}

	w.order, w.callers = runtimeOrder{instance, targetSecret, earlier}, append(w.callers, caller)

	if w.provision != nil {
		return provisionerclient.Operation{}, w.provision
	}

	runtimeID := "runtime-of-" + caller.IdempotencyKey
	err := w.call("provision", func() {
		if !w.orders[caller.IdempotencyKey] {
			w.orders[caller.IdempotencyKey], w.runtimes[caller.IdempotencyKey] = true, runtimeID
		}
	})

	return provisionerclient.Operation{ID: "creation-of-" + runtimeID, RuntimeID: runtimeID}, err
}

func (w *fixture) DeprovisionRuntime(_ context.Context, caller provisionerclient.Caller, runtimeID string) (string, error) {
	w.callers = append(w.callers, caller)

	if w.deprovision != nil {
		return "", w.deprovision
	}

	err := w.call("deprovision", func() { w.removals[runtimeID] = "removal-of-" + runtimeID })

	return "removal-of-" + runtimeID, err
}

// OperationStatus reports a removal as in progress at the first poll, and then as succeeded.
func (w *fixture) OperationStatus(_ context.Context, _, operationID string) (provisionerclient.Operation, error) {
	status := provisionerclient.Operation{ID: operationID, State: provisionerclient.StateInProgress}

	err := w.call("status", func() {
		for key, runtimeID := range w.runtimes {
			if w.removals[runtimeID] == operationID {
				delete(w.runtimes, key)

				return
			}
		}

		status.State = provisionerclient.StateSucceeded
	})

	return status, err
}

func (w *fixture) SetRuntime(_ context.Context, _ process.Record, _ environment.Instance, runtimeID string) error {
	return w.call("record", func() { w.recorded = runtimeID })
}

type effect func() error

func (w *fixture) Delete(_ process.Record, _ environment.Instance, notCompleted []string) process.Effect {
	return effect(func() error { return w.call("delete", func() { w.rows, w.left = 0, notCompleted }) })
}

func (w *fixture) Cleaned(_ process.Record, notCompleted []string) process.Effect {
	return effect(func() error { return w.call("cleaned", func() { w.rows, w.left = 0, notCompleted }) })
}

func (w *fixture) RuntimeUser(_ context.Context, former environment.Instance) (string, error) {
	switch {
	case w.undecided:
		return "", failure.New(failure.Waiting, "the runtime of the instance is being created")
	case w.user != "" && former.RuntimeID == w.used:
		return w.user, nil
	default:
		return "", nil
	}
}

func (w *fixture) Reused(_ process.Record, instanceID string) process.Effect {
	return effect(func() error { return w.call("reused by "+instanceID, func() {}) })
}

func (w *fixture) Suspend(_ process.Record, _ environment.Instance, change *environment.Update, notCompleted []string) process.Effect {
	return effect(func() error {
		return w.call("suspend", func() { w.suspended, w.change, w.left = true, change, notCompleted })
	})
}

func (w *fixture) LastProvisioning(context.Context, string) (environment.Data, error) {
	return w.past, w.call("past", func() {})
}

func (w *fixture) waiter() provisionerwait.Waiter {
	return provisionerwait.Waiter{
		Operations: w, Limit: time.Hour, Pace: func(time.Duration) time.Duration { return pace },
	}
}

func (w *fixture) process() process.Process[environment.Data] {
	return Process(Options{
		Provisioner: w, Instances: w, Provisionings: w, Waiter: w.waiter(), Runtimes: &fakeRuntimes{},
		Objects: stepstest.New(), Kind: ours, Limit: 24 * time.Hour,
	})
}

func instance() environment.Instance {
	return environment.Instance{
		ID: instanceID, GlobalAccountID: tenant, SubAccountID: "sub-1", Provider: "aws", Region: "eu-central-1",
		Name: "first", ShootName: "c-1234567",
		Request: environment.Request{Cluster: environment.Cluster{
			KubernetesVersion: "1.35.4", MachineType: "m6i.large", Zones: []string{"eu-central-1a"}, NodesCIDR: "10.250.0.0/16",
		}},
	}
}

func withRuntime(id string) environment.Instance {
	recorded := instance()
	recorded.RuntimeID = id

	return recorded
}

func newOperation(data environment.Data) Operation {
	return process.NewOperation(process.Record{ID: removal, InstanceID: instanceID, Kind: environment.KindDeprovision}, data, began)
}

// stored encodes and decodes the data, as the engine does between two runs.
func stored(t *testing.T, data environment.Data) environment.Data {
	t.Helper()

	text, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}

	var read environment.Data
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}

	return read
}

// run runs a step once, and then its effect.
func run(t *testing.T, step process.Step[environment.Data], operation Operation) (Operation, time.Duration, error) {
	t.Helper()

	after, wait, err := step.Run(t.Context(), operation, logging.Discard())
	if made, is := after.Effect.(effect); is {
		err = made()
	}

	return after, wait, err
}

// done runs a step and fails the test unless the step is done.
func done(t *testing.T, step process.Step[environment.Data], operation Operation) Operation {
	t.Helper()

	after, wait, err := run(t, step, operation)
	if err != nil || wait != 0 {
		t.Fatalf("%s: runs again after %s, %v", step.Name(), wait, err)
	}

	return after
}

// ours is an Options.Kind that reports this repository's Provisioner.
func ours() provisionerclient.Kind { return provisionerclient.KindOurs }

func kindOf(former, unknown bool) func() provisionerclient.Kind {
	switch {
	case former:
		return func() provisionerclient.Kind { return provisionerclient.KindKyma }
	case unknown:
		return func() provisionerclient.Kind { return provisionerclient.KindUnknown }
	default:
		return ours
	}
}
