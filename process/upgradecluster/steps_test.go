package upgradecluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
	"github.com/environment-broker/environment-broker/process/stepstest"
	"github.com/environment-broker/environment-broker/process/upgrading"
)

// fixture has a fake Provisioner and the broker's row of the instance.
type fixture struct {
	instance environment.Instance
	// orders are the versions before and after the upgrades, by idempotency key and tenant.
	orders  map[string]string
	status  provisionerclient.Operation
	polls   int
	ending  bool
	refusal error
	// deletes makes the deletion of the instance begin with the last poll. restored counts the calls that end the AvS maintenance; all of
	// them fail.
	deletes  bool
	restored int
	// announced are the IDs of the upgrades about which customers were informed, each with the number of orders at that time.
	announced []string
}

func (w *fixture) Announce(_ context.Context, by process.Record) error {
	w.announced = append(w.announced, fmt.Sprintf("%s before order %d", by.ID, len(w.orders)+1))

	return nil
}

func (w *fixture) Find(context.Context, string) (environment.Instance, error) { return w.instance, nil }

func (w *fixture) RuntimeEnding(context.Context, string) (bool, error) { return w.ending, nil }

func (w *fixture) UpgradeRuntime(_ context.Context, caller provisionerclient.Caller, instance, changed environment.Instance) (provisionerclient.Operation, error) {
	if w.refusal != nil {
		return provisionerclient.Operation{}, w.refusal
	}

	w.orders[caller.IdempotencyKey+" "+caller.Tenant] = instance.Request.Cluster.KubernetesVersion + " " + changed.Request.Cluster.KubernetesVersion

	return provisionerclient.Operation{ID: "upgrade-of-" + caller.IdempotencyKey}, nil
}

func (w *fixture) OperationStatus(context.Context, string, string) (provisionerclient.Operation, error) {
	w.polls++
	w.ending = w.ending || w.deletes

	return w.status, nil
}

func (w *fixture) Begin(context.Context, process.Record) error { return nil }

func (w *fixture) End(context.Context, process.Record) error {
	w.restored++

	return failure.New(failure.Transient, "AvS cannot be reached")
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
		orders: map[string]string{}, status: provisionerclient.Operation{State: provisionerclient.StateSucceeded},
		instance: environment.Instance{
			ID: "instance-1", GlobalAccountID: "account-1", RuntimeID: "runtime-1", MaintenanceVersion: "1.0.0",
			Request: environment.Request{Cluster: environment.Cluster{KubernetesVersion: "1.34.2", AutoScalerMax: 3}},
		},
	}
}

func (w *fixture) process() process.Process[environment.Data] { return Process(w.options()) }

func (w *fixture) options() Options {
	return Options{Provisioner: w, Options: upgrading.Options{Instances: w, Notifications: w, Waiter: provisionerwait.Waiter{
		Operations: w, Limit: time.Hour, Pace: func(time.Duration) time.Duration { return time.Second },
	}}}
}

// run runs all steps, as the engine does, until one of them waits or fails.
func run(t *testing.T, w *fixture, upgrade environment.Upgrade) (Operation, time.Duration, error) {
	t.Helper()

	operation := process.NewOperation(process.Record{ID: "op-2", InstanceID: "instance-1"}, environment.Data{Upgrade: &upgrade},
		time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

	return stepstest.Run(t, w.process().Stages, operation)
}

func TestUpgrade(t *testing.T) {
	cases := map[string]struct {
		reason  string
		upgrade environment.Upgrade
		change  func(*fixture)

		orders               map[string]string
		announced            []string
		polls                int
		version, maintenance string // in the row, after the upgrade
		description          string
	}{
		"plan": {
			"the version of the plan comes with its maintenance version",
			environment.Upgrade{Version: "1.35.4", MaintenanceVersion: "1.1.0"},
			func(*fixture) {},
			map[string]string{"op-2 account-1": "1.34.2 1.35.4"},
			[]string{"op-2 before order 1"},
			1, "1.35.4", "1.1.0", "The cluster was upgraded to Kubernetes 1.35.4",
		},
		"version": {
			"a version of the operator keeps the maintenance version",
			environment.Upgrade{Version: "1.35"},
			func(*fixture) {},
			map[string]string{"op-2 account-1": "1.34.2 1.35"},
			[]string{"op-2 before order 1"},
			1, "1.35", "1.0.0", "The cluster was upgraded to Kubernetes 1.35",
		},
		"dry run": {
			"a dry run calls nobody and changes nothing",
			environment.Upgrade{Version: "1.35", DryRun: true},
			func(*fixture) {},
			map[string]string{},
			nil,
			0, "1.34.2", "1.0.0", "Dry run, nothing was changed: the cluster would be upgraded from Kubernetes 1.34.2 to 1.35",
		},
		"deleting": {
			"the instance is being deleted",
			environment.Upgrade{Version: "1.35"},
			func(w *fixture) { w.ending = true },
			map[string]string{},
			nil,
			0, "1.34.2", "1.0.0", "Preempted: the runtime is being removed",
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newFixture()
			c.change(w)

			ended, wait, err := run(t, w, c.upgrade)
			if err != nil || wait != 0 || ended.Description != c.description {
				t.Fatalf("%s: runs again after %s, %v; %s", c.reason, wait, err, ended.Description)
			}

			if diff := cmp.Diff(c.orders, w.orders); diff != "" || w.polls != c.polls {
				t.Errorf("%s: %d polls, orders -want +got\n%s", c.reason, w.polls, diff)
			}

			if diff := cmp.Diff(c.announced, w.announced); diff != "" {
				t.Errorf("%s: notifications -want +got\n%s", c.reason, diff)
			}

			if got := w.instance; got.Request.Cluster.KubernetesVersion != c.version || got.MaintenanceVersion != c.maintenance {
				t.Errorf("%s: the row has %s and %s", c.reason, got.Request.Cluster.KubernetesVersion, got.MaintenanceVersion)
			}
		})
	}
}

// TestNotAfter checks that an upgrade that started in time runs to its end, even if its worker is late, and that any other upgrade fails and
// changes nothing.
func TestNotAfter(t *testing.T) {
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	for name, c := range map[string]struct {
		reason   string
		accepted time.Time
		notAfter time.Time
		now      time.Time
		orders   int
	}{
		"in time":      {"it starts before the end", started, started.Add(time.Second), started, 1},
		"long upgrade": {"the first attempt counts", started, started.Add(time.Second), started.Add(time.Hour), 1},
		"at the end":   {"the end is too late", started.Add(-time.Minute), started, started, 0},
		"too late":     {"after the end", started.Add(-2 * time.Hour), started.Add(-time.Hour), started, 0},
		"retry":        {"an operator has retried it after the end", started, started.Add(-time.Hour), started, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture()
			operation := process.NewOperation(process.Record{ID: "op-2", InstanceID: "instance-1", CreatedAt: c.accepted, StartedAt: started},
				environment.Data{Upgrade: &environment.Upgrade{Version: "1.35", NotAfter: c.notAfter}}, c.now)

			_, _, err := stepstest.Run(t, w.process().Stages, operation)
			if late := failure.Of(err).Reason == failure.ReasonNotStarted; len(w.orders) != c.orders || len(w.announced) != c.orders || late != (c.orders == 0) {
				t.Errorf("%s: orders %v, announced %v, %v", c.reason, w.orders, w.announced, err)
			}
		})
	}
}

// TestDeletionAfterTheUpgrade checks that an outage of AvS does not delay a deletion that arrives when the cluster has been upgraded, and
// that the result is recorded: a suspended instance keeps it.
func TestDeletionAfterTheUpgrade(t *testing.T) {
	for name, deletes := range map[string]bool{"lasting": false, "deleted": true} {
		t.Run(name, func(t *testing.T) {
			w := newFixture()
			w.deletes = deletes

			options := w.options()
			options.Maintenance = w

			operation := process.NewOperation(process.Record{ID: "op-2", InstanceID: "instance-1"},
				environment.Data{Upgrade: &environment.Upgrade{Version: "1.35"}}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

			_, wait, err := stepstest.Run(t, Process(options).Stages, operation)
			if err != nil || (wait == 0) != deletes || (w.restored == 0) != deletes {
				t.Errorf("runs again after %s, %v, and AvS was called %d times", wait, err, w.restored)
			}

			if version := w.instance.Request.Cluster.KubernetesVersion; (version == "1.35") != deletes {
				t.Errorf("the row has %s", version)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	w := newFixture()
	w.refusal = failure.New(failure.Waiting, "busy")

	if _, wait, err := run(t, w, environment.Upgrade{Version: "1.35"}); err != nil || wait != time.Second {
		t.Errorf("a busy Provisioner: waits %s, %v", wait, err)
	}

	w.refusal = failure.New(failure.Permanent, "no such version")
	if _, _, err := run(t, w, environment.Upgrade{Version: "1.35"}); !failure.Is(err, failure.Permanent) {
		t.Errorf("a refusal: %v", err)
	}

	w = newFixture()
	w.status.State = provisionerclient.StateFailed

	if _, _, err := run(t, w, environment.Upgrade{Version: "1.35"}); !failure.Is(err, failure.Permanent) || w.instance.Request.Cluster.KubernetesVersion != "1.34.2" {
		t.Errorf("a failed upgrade: %v, the row has %s", err, w.instance.Request.Cluster.KubernetesVersion)
	}
}
