package upgradekyma

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
	"github.com/environment-broker/environment-broker/process/stepstest"
	"github.com/environment-broker/environment-broker/process/upgrading"
)

const pace = 7 * time.Second

// fixture has a fake Provisioner, a control plane and the broker's row of the instance. calls are the calls of other systems.
type fixture struct {
	instance environment.Instance
	calls    []string
	orders   map[string]environment.Kyma
	status   provisionerclient.Operation
	// standard is the default version of Kyma. endsAfter names the call after which the removal of the runtime begins. ending is true if
	// it has begun.
	standard, endsAfter string
	ending              bool
	// component is a component of the version, or empty.
	component string

	refusal, lost, silent, unmonitored error // the errors of the Provisioner, of the database, of the runtime and of AvS
	unannounced                        error // the error of the notifications
}

func (w *fixture) Announce(context.Context, process.Record) error {
	w.call("announce")

	return w.unannounced
}

func (w *fixture) Begin(context.Context, process.Record) error {
	w.call("begin")

	return w.unmonitored
}

func (w *fixture) End(context.Context, process.Record) error {
	w.call("end")

	return w.unmonitored
}

func (w *fixture) call(name string) {
	w.calls = append(w.calls, name)
	w.ending = w.ending || name == w.endsAfter
}

func (w *fixture) Find(context.Context, string) (environment.Instance, error) {
	return w.instance, w.lost
}

func (w *fixture) RuntimeEnding(context.Context, string) (bool, error) { return w.ending, w.lost }

func (w *fixture) Probe(context.Context, environment.Instance) error {
	w.call("probe")

	return w.silent
}

func (w *fixture) Complete(_ context.Context, instance environment.Instance) (*environment.Kyma, error) {
	w.call("complete")

	completed := *instance.Request.Cluster.Kyma
	if completed.Version == "" {
		completed.Version = w.standard
	}

	completed.Installation = &environment.KymaInstallation{Version: completed.Version}
	if w.component != "" {
		completed.Installation.Add(environment.KymaComponent{Name: w.component})
	}

	return &completed, nil
}

func (w *fixture) Overrides(_ context.Context, instance environment.Instance) (*environment.Kyma, error) {
	w.call("overrides")

	overridden := *instance.Request.Cluster.Kyma
	overridden.Installation.Set("", environment.KymaEntry{Key: "k", Value: "overridden"})
	overridden.Installation.Set("btp-operator", environment.KymaEntry{Key: "manager.secret.clientsecret", Value: "overridden"})

	return &overridden, nil
}

func (w *fixture) UpgradeKyma(_ context.Context, caller provisionerclient.Caller, changed environment.Instance) (provisionerclient.Operation, error) {
	w.call("order of " + caller.Tenant)

	if w.refusal != nil {
		return provisionerclient.Operation{}, w.refusal
	}

	if _, repeated := w.orders[caller.IdempotencyKey]; !repeated {
		w.orders[caller.IdempotencyKey] = *changed.Request.Cluster.Kyma
	}

	return provisionerclient.Operation{ID: "upgrade-of-" + caller.IdempotencyKey}, nil
}

func (w *fixture) RollBackKyma(_ context.Context, caller provisionerclient.Caller, changed environment.Instance) (provisionerclient.Operation, error) {
	w.call("rollback of " + caller.Tenant + " to " + changed.Request.Cluster.Kyma.Version)

	return provisionerclient.Operation{ID: "rollback-of-" + caller.IdempotencyKey}, w.refusal
}

func (w *fixture) OperationStatus(context.Context, string, string) (provisionerclient.Operation, error) {
	w.call("status")

	return w.status, nil
}

func (w *fixture) Update(_ environment.Instance, change environment.Update) process.Effect {
	return stepstest.Effect(func() error {
		var err error

		w.instance, err = change.Apply(w.instance)

		return err
	})
}

func newFixture() *fixture {
	return &fixture{
		standard: "2.0.0", orders: map[string]environment.Kyma{}, status: provisionerclient.Operation{State: provisionerclient.StateSucceeded},
		instance: environment.Instance{
			ID: "instance-1", GlobalAccountID: "moved-to", SubscriptionAccountID: "ordered-by", RuntimeID: "runtime-1", PlanID: "plan",
			Request: environment.Request{Cluster: environment.Cluster{Kyma: &environment.Kyma{Version: "1.0.0", Modules: []string{"eventing"}}}},
		},
	}
}

func (w *fixture) process() process.Process[environment.Data] {
	waiter := provisionerwait.Waiter{Operations: w, Limit: time.Hour, Pace: func(time.Duration) time.Duration { return pace }}

	return Process(Options{
		Options: upgrading.Options{Instances: w, Maintenance: w, Notifications: w, Waiter: waiter}, Provisioner: w, Kyma: w, Access: w,
	})
}

func ordered(upgrade environment.Upgrade) Operation {
	return process.NewOperation(process.Record{ID: "op-2", InstanceID: "instance-1"}, environment.Data{Upgrade: &upgrade},
		time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
}

// run runs the steps of all stages that follow those in done, as the engine does, until one of them waits or fails.
func run(t *testing.T, w *fixture, operation Operation, done ...string) (Operation, time.Duration, error) {
	t.Helper()

	return stepstest.Run(t, w.process().Stages[len(done):], operation)
}

func TestUpgrade(t *testing.T) {
	cases := map[string]struct {
		reason  string
		upgrade environment.Upgrade
		change  func(*fixture)

		calls       []string
		version     string // in the row, after the upgrade
		description string
	}{
		"default": {
			"without a version, the default is installed",
			environment.Upgrade{},
			func(*fixture) {},
			[]string{"complete", "probe", "begin", "overrides", "announce", "order of ordered-by", "status", "end"},
			"2.0.0", "Kyma was upgraded to 2.0.0",
		},
		"version": {
			"the operator chooses the version",
			environment.Upgrade{Version: "1.5.0"},
			func(*fixture) {},
			[]string{"complete", "probe", "begin", "overrides", "announce", "order of ordered-by", "status", "end"},
			"1.5.0", "Kyma was upgraded to 1.5.0",
		},
		"rollback": {
			"the Provisioner knows the previous configuration with its values",
			environment.Upgrade{Version: "0.9.0", RollsBack: "op-1", Former: &environment.Kyma{Version: "0.9.0", Modules: []string{"eventing"}}},
			func(*fixture) {},
			[]string{"probe", "begin", "announce", "rollback of ordered-by to 0.9.0", "status", "end"},
			"0.9.0", "Kyma was rolled back to 0.9.0",
		},
		"dry run": {
			"a dry run calls nobody and changes nothing",
			environment.Upgrade{Version: "1.5.0", DryRun: true},
			func(*fixture) {},
			nil, "1.0.0", "Dry run, nothing was changed: Kyma would be upgraded from 1.0.0 to 1.5.0",
		},
		"gone": {
			"the instance was deleted before the upgrade started",
			environment.Upgrade{},
			func(w *fixture) {
				w.lost = failure.New(failure.Permanent, "gone").WithReason(failure.ReasonNotFound, failure.ComponentBrokerDatabase)
			},
			nil, "1.0.0", "Preempted: the runtime is being removed",
		},
		"deleting": {
			"the instance is being deleted",
			environment.Upgrade{},
			func(w *fixture) { w.ending = true },
			nil, "1.0.0", "Preempted: the runtime is being removed",
		},
		"no runtime": {
			"the instance was suspended",
			environment.Upgrade{},
			func(w *fixture) { w.instance.RuntimeID = "" },
			nil, "1.0.0", "Preempted: the runtime is being removed",
		},
		"deleted before the order": {
			"nothing is ordered for a runtime that is being removed",
			environment.Upgrade{},
			func(w *fixture) { w.endsAfter = "probe" },
			[]string{"complete", "probe"},
			"1.0.0", "Preempted: the runtime is being removed",
		},
		"deleted after the order": {
			"the deletion need not wait for the Provisioner",
			environment.Upgrade{},
			func(w *fixture) { w.endsAfter = "order of ordered-by" },
			[]string{"complete", "probe", "begin", "overrides", "announce", "order of ordered-by"},
			"1.0.0", "Preempted: the runtime is being removed",
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newFixture()
			c.change(w)

			ended, wait, err := run(t, w, ordered(c.upgrade))
			if err != nil || wait != 0 {
				t.Fatalf("%s: runs again after %s, %v", c.reason, wait, err)
			}

			if diff := cmp.Diff(c.calls, w.calls); diff != "" {
				t.Errorf("%s: calls, -want +got\n%s", c.reason, diff)
			}

			if got := w.instance.Request.Cluster.Kyma.Version; got != c.version || ended.Description != c.description {
				t.Errorf("%s: the row has version %s; %s", c.reason, got, ended.Description)
			}
		})
	}
}

func TestTheOrderHasTheOverrides(t *testing.T) {
	w := newFixture()
	if _, _, err := run(t, w, ordered(environment.Upgrade{})); err != nil {
		t.Fatal(err)
	}

	want := map[string]environment.Kyma{"op-2": {Version: "2.0.0", Modules: []string{"eventing"}, Installation: &environment.KymaInstallation{
		Version: "2.0.0", Configuration: []environment.KymaEntry{{Key: "k", Value: "overridden"}},
	}}}
	if diff := cmp.Diff(want, w.orders); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestCredentialsReplaceOverrides checks that the credentials of the tenant replace overrides with the same keys, as in a creation.
func TestCredentialsReplaceOverrides(t *testing.T) {
	w := newFixture()
	w.component = "btp-operator"
	w.instance.Request.Cluster.ServiceManager = &environment.ServiceManager{ClientSecret: "tenant"}

	if _, _, err := run(t, w, ordered(environment.Upgrade{})); err != nil {
		t.Fatal(err)
	}

	want := environment.KymaEntry{Key: "manager.secret.clientsecret", Value: "tenant", Secret: true}
	if got := w.orders["op-2"].Installation.Components[0].Configuration; !slices.Contains(got, want) {
		t.Errorf("btp-operator gets %v, want %v", got, want)
	}
}

// TestVersionIsChosenOnce changes the default while the Provisioner is busy. The operation keeps the version that it has stored, and a
// retry by an operator chooses again.
func TestVersionIsChosenOnce(t *testing.T) {
	w := newFixture()
	w.refusal = failure.New(failure.Waiting, "busy")

	waiting, wait, err := run(t, w, ordered(environment.Upgrade{}))
	if err != nil || wait <= 0 {
		t.Fatalf("a busy Provisioner: waits %s, %v", wait, err)
	}

	w.refusal, w.standard = nil, "3.0.0"

	if _, _, err := run(t, w, waiting); err != nil || w.instance.Request.Cluster.Kyma.Version != "2.0.0" {
		t.Errorf("the version changed to %s, %v", w.instance.Request.Cluster.Kyma.Version, err)
	}

	waiting.ID = "op-3"
	if _, _, err := run(t, w, waiting); err != nil || w.instance.Request.Cluster.Kyma.Version != "3.0.0" {
		t.Errorf("a retry installs %s, %v", w.instance.Request.Cluster.Kyma.Version, err)
	}
}

func TestFailures(t *testing.T) {
	away := failure.Wrap(failure.Transient, errors.New("away"), "the system is unreachable")

	cases := map[string]struct {
		reason string
		change func(*fixture)
		want   failure.Kind
		calls  string // the last call
	}{
		"database": {"errors of the database are retried", func(w *fixture) { w.lost = away }, failure.Transient, ""},
		"runtime":  {"the upgrade starts only if the runtime responds", func(w *fixture) { w.silent = away }, failure.Transient, "probe"},
		"refused": {
			"permanent errors are not retried", func(w *fixture) { w.refusal = failure.New(failure.Permanent, "no such release") },
			failure.Permanent, "order of ordered-by",
		},
		"failed": {
			"a failed upgrade fails the operation", func(w *fixture) { w.status.State = provisionerclient.StateFailed },
			failure.Permanent, "status",
		},
		"without Kyma": {
			"there is nothing to upgrade", func(w *fixture) { w.instance.Request.Cluster.Kyma = nil }, failure.Permanent, "",
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newFixture()
			c.change(w)

			operation, _, err := run(t, w, ordered(environment.Upgrade{}))
			if !failure.Is(err, c.want) || operation.Effect != nil {
				t.Errorf("%s: %v, effect %v", c.reason, err, operation.Effect)
			}

			if got := strings.Join(w.calls, ","); !strings.HasSuffix(got, c.calls) || c.calls == "" && got != "" {
				t.Errorf("%s: calls %s", c.reason, got)
			}
		})
	}
}

func TestTheCheckWaits(t *testing.T) {
	w := newFixture()
	w.status.State = provisionerclient.StateInProgress

	checked, wait, err := run(t, w, ordered(environment.Upgrade{}))
	if err != nil || wait != pace || checked.WaitingFor != "provisioner operation upgrade-of-op-2" {
		t.Fatalf("waits %s for %q, %v", wait, checked.WaitingFor, err)
	}

	w.status.State = provisionerclient.StateSucceeded
	if _, wait, err = run(t, w, checked, "upgrade"); err != nil || wait != 0 || len(w.orders) != 1 {
		t.Errorf("the second check: waits %s, %d orders, %v", wait, len(w.orders), err)
	}
}

// TestMaintenance upgrades an instance while AvS is unreachable. Each step that calls AvS gives up after five minutes, and the upgrade
// continues.
func TestMaintenance(t *testing.T) {
	w := newFixture()
	w.unmonitored = failure.New(failure.Transient, "AvS is unreachable")

	operation, wait, err := run(t, w, ordered(environment.Upgrade{}))
	if err != nil || wait != 30*time.Second || len(w.orders) > 0 {
		t.Errorf("the upgrade does not wait for AvS: %s, %v, orders %v", wait, err, w.orders)
	}

	if _, wait, err = run(t, w, operation, "upgrade", "check"); err != nil || wait != 10*time.Second {
		t.Errorf("the end does not wait for AvS: %s, %v", wait, err)
	}

	for _, stage := range w.process().Stages {
		for _, task := range stage.Steps {
			if task.Notes.System == "AvS" && (!task.Notes.Optional || !task.Skippable || task.Notes.Limit != 5*time.Minute) {
				t.Errorf("%s: %+v", task.Step.Name(), task)
			}
		}
	}

	off := Process(Options{Options: upgrading.Options{Instances: w}, Provisioner: w, Kyma: w, Access: w})
	for _, stage := range off.Stages {
		for _, task := range stage.Steps {
			if task.When.Off != (task.Notes.System == "AvS" || task.Step.Name() == "Send_Notification") {
				t.Errorf("without AvS and notifications, %s is off: %t", task.Step.Name(), task.When.Off)
			}
		}
	}
}

// TestNotification upgrades an instance while the messages cannot be recorded. After five minutes the upgrade continues without them.
func TestNotification(t *testing.T) {
	w := newFixture()
	w.unannounced = failure.New(failure.Transient, "the database is unreachable")

	_, wait, err := run(t, w, ordered(environment.Upgrade{}))
	if err != nil || wait != 10*time.Second || len(w.orders) > 0 {
		t.Errorf("the upgrade does not wait for the messages: %s, %v, orders %v", wait, err, w.orders)
	}

	operation := ordered(environment.Upgrade{})
	failing := process.NewFailingOperation(operation.Record, operation.Data, operation.Now(), operation.Now().Add(5*time.Minute))

	for _, task := range w.process().Stages[0].Steps {
		if task.Step.Name() != "Send_Notification" {
			continue
		}

		if !task.Notes.Optional || !task.Skippable || task.Notes.Limit != 5*time.Minute {
			t.Errorf("%+v", task)
		}

		if _, wait, err := task.Step.Run(t.Context(), failing, logging.Discard()); err != nil || wait != 0 {
			t.Errorf("the upgrade still waits after five minutes: %s, %v", wait, err)
		}
	}
}
