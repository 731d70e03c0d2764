package deprovisioning

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

func TestEachStepIsAStage(t *testing.T) {
	process := newFixture(environment.Data{}).process()
	if err := process.Validate(); err != nil {
		t.Error(err)
	}

	want := []string{
		"Init_Step",
		"BTPOperator_Cleanup",
		"De-provision_AVS_Evaluations",
		"EDP_Deregistration",
		"IAS_Deregistration",
		"Delete_Kyma_Resource",
		"Check_Kyma_Resource_Deleted",
		"Deregister_Cluster",
		"Check_Cluster_Deregistration",
		"Remove_Runtime",
		"Check_Runtime_Removal",
		"Delete_Kubeconfig",
		"Release_Subscription",
		"Remove_Instance",
	}
	if diff := cmp.Diff(want, process.StageNames()); diff != "" {
		t.Errorf("running operations name their stages, -want +got:\n%s", diff)
	}
}

func TestStartTakesOverTheProvisioning(t *testing.T) {
	cases := map[string]struct {
		reason   string
		instance environment.Instance
		past     environment.Data
		want     environment.Data
	}{
		"never started": {
			"a provisioning that was canceled before its start has ordered nothing",
			instance(),
			environment.Data{Instance: instance(), Provisioning: provisioning},
			environment.Data{Instance: instance(), Provisioning: provisioning},
		},
		"ordered": {
			"only the provisioning knows whether the order may have been sent, and with which values",
			instance(),
			environment.Data{Instance: instance(), Provisioning: provisioning, Ordered: true, TargetSecret: "new", EarlierSecrets: []string{"old"}},
			environment.Data{Instance: instance(), Provisioning: provisioning, Ordered: true, TargetSecret: "new", EarlierSecrets: []string{"old"}},
		},
		"only the provisioning recorded the runtime": {
			"the runtime was ordered after the removal was accepted",
			instance(),
			environment.Data{Instance: withRuntime("r"), Ordered: true, ProvisionerOperationID: "creation"},
			environment.Data{Instance: withRuntime("r"), Ordered: true},
		},
		"only the instance recorded the runtime": {
			"the provisioning crashed before it could store the runtime",
			withRuntime("r"),
			environment.Data{Instance: instance(), Ordered: true},
			environment.Data{Instance: withRuntime("r"), Ordered: true},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			step := start(newFixture(c.past))
			first := done(t, step, newOperation(environment.Data{Instance: c.instance}))
			again := done(t, step, newOperation(stored(t, first.Data)))

			for _, got := range []Operation{first, again} {
				if diff := cmp.Diff(c.want, got.Data); diff != "" || got.Description == "" {
					t.Errorf("%s: described as %q, -want +got:\n%s", c.reason, got.Description, diff)
				}
			}
		})
	}

	if _, _, err := run(t, start(&fixture{broken: 1}), newOperation(environment.Data{})); !failure.Is(err, failure.Transient) {
		t.Errorf("a database outage returns %v", err)
	}
}

func TestRemoveRuntime(t *testing.T) {
	ordered := environment.Data{Instance: instance(), Provisioning: provisioning, Ordered: true, TargetSecret: "aws-account"}
	data := environment.Data{Instance: withRuntime("r"), Provisioning: provisioning, Ordered: true}
	confirmed := data
	confirmed.RuntimeKnown = true
	unknown := ordered
	unknown.Instance.Provider = "elsewhere"

	away := failure.New(failure.Transient, "away")
	taken := failure.New(failure.Permanent, "a cluster of the name exists").WithReason(failure.ReasonAlreadyExists, "gardener")

	cases := map[string]struct {
		reason      string
		data        environment.Data
		provision   error
		deprovision error
		unknown     bool
		former      bool
		wantCalls   []string
		wantRemoval string // the Provisioner's operation to wait for
		wantWait    time.Duration
		wantKind    failure.Kind
		wantText    string
	}{
		"no runtime ordered": {
			reason: "a provisioning that was canceled early left no runtime",
			data:   environment.Data{Instance: instance(), Provisioning: provisioning},
		},
		"runtime known": {
			reason: "a finished provisioning", data: data, wantCalls: []string{"deprovision"}, wantRemoval: "removal-of-r",
		},
		"runtime unknown": {
			reason: "the step finds the runtime by the key of the order, and records it before the removal", data: ordered,
			wantCalls: []string{"provision", "record", "deprovision"}, wantRemoval: "removal-of-runtime-of-op-1",
		},
		"order refused": {
			reason: "a rejected order has created no runtime", data: ordered,
			provision: failure.New(failure.Permanent, "no such machine type"),
		},
		"name is another runtime's": {
			reason: "our Provisioner supports keys, so the cluster with this name is not from this order", data: ordered, provision: taken,
		},
		"Kyma Provisioner": {
			reason: "the Kyma Provisioner has no keys, so an operator must check: the error names the cluster", data: ordered, provision: taken,
			former:   true,
			wantKind: failure.Permanent, wantText: `a cluster named "c-1234567" may be left`,
		},
		"Provisioner not known yet": {
			reason: "a rejection is inconclusive until the broker knows whether the Provisioner supports keys", data: ordered, provision: taken, unknown: true,
			wantKind: failure.Waiting, wantText: "does not know yet",
		},
		"Provisioner away before the order": {
			reason: "whether a runtime exists is unknown until the Provisioner responds", data: ordered, provision: away,
			wantKind: failure.Transient, wantText: "away",
		},
		"Provisioner busy before the order": {
			reason: "a busy Provisioner is called again", data: ordered, provision: failure.New(failure.Waiting, "busy"),
			wantKind: failure.Waiting, wantText: "busy",
		},
		"instance that cannot be ordered": {
			reason: "an internal error must not count as a removed runtime", data: unknown,
			wantKind: failure.Internal, wantText: "elsewhere",
		},
		"runtime gone": {
			reason: "a runtime that the Provisioner knew at the start of the removal but no longer knows is removed", data: confirmed,
			deprovision: failure.New(failure.NotFound, "there is no such runtime"),
		},
		"runtime never known": {
			reason: "the broker may be connected to the wrong Provisioner, and the cluster may still run", data: data,
			deprovision: failure.New(failure.NotFound, "there is no such runtime"),
			wantKind:    failure.Transient, wantText: `does not know the runtime r (cluster "c-1234567"), which may still be running: retrying for 5m0s`,
		},
		"another operation runs": {
			reason: "a Kyma Provisioner runs only one operation of a runtime at a time", data: data,
			deprovision: failure.New(failure.Waiting, "an upgrade is in progress"), wantWait: time.Second,
		},
		"Provisioner away": {
			reason: "errors are left to the retry policy", data: data, deprovision: away,
			wantKind: failure.Transient, wantText: "away",
		},
		"removal refused": {
			reason: "a rejected removal needs an operator", data: data,
			deprovision: failure.New(failure.Permanent, "not yours"), wantKind: failure.Permanent, wantText: "not yours",
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newFixture(environment.Data{})
			w.provision, w.deprovision = c.provision, c.deprovision

			got, wait, err := run(t, removeRuntime{
				provisioner: w, instances: w, waiter: w.waiter(), kind: kindOf(c.former, c.unknown),
			}, newOperation(c.data))
			if wait != c.wantWait || (err == nil) != (c.wantKind == "") {
				t.Fatalf("%s: runs again after %s, %v", c.reason, wait, err)
			}

			if err != nil && (failure.KindOf(err) != c.wantKind || !strings.Contains(failure.Of(err).Text, c.wantText)) {
				t.Errorf("%s: got %s %q, want %s with %q", c.reason, failure.KindOf(err), failure.Of(err).Text, c.wantKind, c.wantText)
			}

			if diff := cmp.Diff(c.wantCalls, w.calls); diff != "" {
				t.Errorf("%s: calls -want +got:\n%s", c.reason, diff)
			}

			if got.Data.ProvisionerOperationID != c.wantRemoval {
				t.Errorf("%s: it waits for operation %q, want %q", c.reason, got.Data.ProvisionerOperationID, c.wantRemoval)
			}

			if c.wantRemoval != "" && got.WaitingFor != provisionerwait.Event(c.wantRemoval) {
				t.Errorf("%s: woken by %q", c.reason, got.WaitingFor)
			}
		})
	}
}

func TestLostRuntimeIsFoundWithTheSameOrder(t *testing.T) {
	w := newFixture(environment.Data{})
	step := removeRuntime{provisioner: w, instances: w, waiter: w.waiter(), kind: ours}

	data := environment.Data{Instance: instance(), Provisioning: provisioning, Ordered: true, TargetSecret: "new", EarlierSecrets: []string{"old"}}
	first := done(t, step, newOperation(data))
	again := done(t, step, newOperation(stored(t, first.Data)))

	if w.order.targetSecret != "new" || !slices.Equal(w.order.earlier, []string{"old"}) || w.order.instance.ShootName != "c-1234567" {
		t.Errorf("the repeated order differs: %+v", w.order)
	}

	find := provisionerclient.Caller{Tenant: tenant, SubAccount: "sub-1", IdempotencyKey: provisioning}
	remove := provisionerclient.Caller{Tenant: tenant, IdempotencyKey: removal}

	if diff := cmp.Diff([]provisionerclient.Caller{find, remove, remove}, w.callers); diff != "" {
		t.Errorf("an order with a different key would create a second runtime, -want +got:\n%s", diff)
	}

	if w.recorded != "runtime-of-op-1" || again.Data.ProvisionerOperationID != first.Data.ProvisionerOperationID {
		t.Errorf("recorded %q, waits for %q and then for %q", w.recorded, first.Data.ProvisionerOperationID, again.Data.ProvisionerOperationID)
	}
}

func TestCheckRuntimeRemoval(t *testing.T) {
	w := newFixture(environment.Data{})
	w.runtimes[provisioning], w.removals["r"] = "r", "removal"
	step := checkRuntimeRemoval(w.waiter(), nil)
	operation := newOperation(environment.Data{Instance: withRuntime("r"), ProvisionerOperationID: "removal"})

	operation, wait, err := run(t, step, operation)
	if err != nil || wait != pace {
		t.Fatalf("during the removal: runs again after %s, %v", wait, err)
	}

	for range 2 {
		operation = done(t, step, operation)
	}

	w.calls = nil
	done(t, step, newOperation(environment.Data{Instance: instance()}))

	if len(w.calls) != 0 {
		t.Errorf("the Provisioner is called for a removal that was never requested: %v", w.calls)
	}
}

// TestRuntimeStaysUnknown checks that the removal of a runtime that the Provisioner never knows fails after unknownWindow, and
// that an operator's retry starts a new window.
func TestRuntimeStaysUnknown(t *testing.T) {
	var leftOver []LeftOver

	w := newFixture(environment.Data{})
	w.deprovision = failure.New(failure.NotFound, "there is no such runtime")
	step := removeRuntime{provisioner: w, instances: w, waiter: w.waiter(), kind: ours, leftOver: func(reason LeftOver) { leftOver = append(leftOver, reason) }}
	data := environment.Data{Instance: withRuntime("r"), Provisioning: provisioning, Ordered: true}

	for _, c := range []struct {
		after time.Duration
		want  failure.Kind
	}{
		{0, failure.Transient},
		{unknownWindow - time.Second, failure.Transient},
		{unknownWindow, failure.Permanent},
		{time.Hour, failure.Transient}, // from here on, an operator's retry, which starts with the data of the failed operation
		{time.Hour + unknownWindow, failure.Permanent},
	} {
		record := process.Record{ID: removal, InstanceID: instanceID, Kind: environment.KindDeprovision}

		got, _, err := run(t, step, process.NewOperation(record, stored(t, data), began.Add(c.after)))
		if failure.KindOf(err) != c.want || failure.Of(err).Reason != failure.ReasonRuntimeUnknown {
			t.Errorf("after %s: got %v, want an error of kind %s", c.after, err, c.want)
		}

		if text := failure.Of(err).Text; !strings.Contains(text, "APP_PROVISIONER_URL does not know the runtime r ") {
			t.Errorf("after %s: the text names neither the runtime nor the variable: %s", c.after, text)
		}

		data = got.Data
	}

	if diff := cmp.Diff([]LeftOver{LeftOverUnknown, LeftOverUnknown}, leftOver); diff != "" {
		t.Errorf("counted as left over: -want +got:\n%s", diff)
	}
}

// TestBusyProvisionerKnowsTheRuntime checks that a Provisioner that is busy with a runtime counts as knowing it. A Kyma
// Provisioner is busy when the request for a removal is repeated after its response was lost.
func TestBusyProvisionerKnowsTheRuntime(t *testing.T) {
	w := newFixture(environment.Data{})
	step := removeRuntime{provisioner: w, instances: w, waiter: w.waiter(), kind: kindOf(true, false)}

	w.deprovision = failure.New(failure.Waiting, "a removal is in progress")

	busy, wait, err := run(t, step, newOperation(environment.Data{Instance: withRuntime("r")}))
	if err != nil || wait == 0 {
		t.Fatalf("a busy Provisioner: runs again after %s, %v", wait, err)
	}

	w.deprovision = failure.New(failure.NotFound, "there is no such runtime")
	done(t, step, newOperation(stored(t, busy.Data)))
}

// TestRetriedRemoval checks that the retry of a failed removal sends a new request instead of polling the failed one, and that a
// runtime is counted as left over only if an operator skips the request.
func TestRetriedRemoval(t *testing.T) {
	w := newFixture(environment.Data{})
	remove := removeRuntime{provisioner: w, instances: w, waiter: w.waiter(), kind: ours}
	failed := done(t, remove, newOperation(environment.Data{Instance: withRuntime("r")})).Data
	w.calls, w.deprovision = nil, failure.New(failure.NotFound, "there is no such runtime")

	var leftOver []LeftOver

	check := checkRuntimeRemoval(w.waiter(), func(reason LeftOver) { leftOver = append(leftOver, reason) })

	removed := done(t, remove, newOperation(failed))
	done(t, check, removed)

	if len(leftOver) != 0 {
		t.Errorf("a removed runtime is counted as left over: %v", leftOver)
	}

	skipped := newOperation(failed)
	skipped.SkippedSteps = []string{removeRuntime{}.Name()}
	done(t, check, skipped)

	if diff := cmp.Diff([]LeftOver{LeftOverSkipped}, leftOver); diff != "" {
		t.Errorf("counted as left over after a skip: -want +got:\n%s", diff)
	}

	if len(w.calls) != 0 {
		t.Errorf("the failed removal is polled without a new request: %v", w.calls)
	}
}

func TestRemoveInstance(t *testing.T) {
	w := newFixture(environment.Data{})
	step := removeInstance(w)

	for range 2 {
		if got := done(t, step, newOperation(environment.Data{})); got.Description != "Runtime was removed" || w.rows != 0 {
			t.Errorf("described as %q, %d rows are left", got.Description, w.rows)
		}
	}

	w.broken = len(w.calls) + 1
	if _, _, err := run(t, step, newOperation(environment.Data{})); !failure.Is(err, failure.Transient) {
		t.Errorf("a database outage returns %v", err)
	}
}
