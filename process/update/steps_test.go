package update

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

// fixture has a fake Provisioner, which creates one operation for each idempotency key, and the broker's row of the instance.
type fixture struct {
	instance environment.Instance
	upgrades map[string]environment.Cluster
	tenant   string
	runtime  string
	status   provisionerclient.Operation

	refusal, lost error // the errors of upgradeShoot and of the database

	modules map[string][]string // the components of upgrades of Kyma, by idempotency key

	probed environment.Cluster // the last probed cluster
	silent error               // the error of the probe

	applied environment.ServiceManager // the last applied credentials
}

func (w *fixture) Probe(_ context.Context, instance environment.Instance) error {
	w.probed = instance.Request.Cluster

	return w.silent
}

func (w *fixture) ApplyServiceManager(_ context.Context, instance environment.Instance, credentials environment.ServiceManager) error {
	w.probed, w.applied = instance.Request.Cluster, credentials

	return w.silent
}

func (w *fixture) UpgradeRuntime(_ context.Context, caller provisionerclient.Caller, instance, changed environment.Instance) (provisionerclient.Operation, error) {
	if w.refusal != nil {
		return provisionerclient.Operation{}, w.refusal
	}

	if w.upgrades == nil {
		w.upgrades = map[string]environment.Cluster{}
	}

	w.upgrades[caller.IdempotencyKey], w.tenant, w.runtime = changed.Request.Cluster, caller.Tenant, instance.RuntimeID

	return provisionerclient.Operation{ID: "upgrade-of-" + caller.IdempotencyKey}, nil
}

func (w *fixture) UpgradeKyma(_ context.Context, caller provisionerclient.Caller, changed environment.Instance) (provisionerclient.Operation, error) {
	if w.refusal != nil {
		return provisionerclient.Operation{}, w.refusal
	}

	if w.modules == nil {
		w.modules = map[string][]string{}
	}

	names := []string{}
	for _, component := range changed.Request.Cluster.Kyma.Installation.Components {
		names = append(names, component.Name+"@"+changed.Request.Cluster.Kyma.Version)
	}

	w.modules[caller.IdempotencyKey] = names

	return provisionerclient.Operation{ID: "upgrade-of-" + caller.IdempotencyKey}, nil
}

// Complete implements Kyma: each module is a component.
func (w *fixture) Complete(_ context.Context, instance environment.Instance) (*environment.Kyma, error) {
	completed := *instance.Request.Cluster.Kyma
	completed.Installation = &environment.KymaInstallation{}

	for _, name := range completed.Modules {
		completed.Installation.Components = append(completed.Installation.Components, environment.KymaComponent{Name: name})
	}

	return &completed, nil
}

// Overrides implements Kyma.
func (w *fixture) Overrides(_ context.Context, instance environment.Instance) (*environment.Kyma, error) {
	return instance.Request.Cluster.Kyma, nil
}

func (w *fixture) OperationStatus(context.Context, string, string) (provisionerclient.Operation, error) {
	return w.status, nil
}

func (w *fixture) Find(context.Context, string) (environment.Instance, error) {
	return w.instance, w.lost
}

func (w *fixture) Update(_ environment.Instance, change environment.Update) process.Effect {
	return stepstest.Effect(func() error {
		if w.lost != nil {
			return w.lost
		}

		var err error

		w.instance, err = change.Apply(w.instance)

		return err
	})
}

const pace = 7 * time.Second

func (w *fixture) process() process.Process[environment.Data] {
	return Process(Options{Provisioner: w, Instances: w, Kyma: w, Access: w, OwnClusterLimit: time.Minute, Limit: time.Hour, Waiter: provisionerwait.Waiter{
		Operations: w, Limit: time.Hour, Pace: func(time.Duration) time.Duration { return pace },
	}})
}

func newFixture() *fixture {
	return &fixture{instance: environment.Instance{
		ID: "instance-1", GlobalAccountID: "moved-to", SubscriptionAccountID: "ordered-by", RuntimeID: "runtime-1",
		PlanID: "plan", ShootName: "c-1234567",
		Request: environment.Request{Cluster: environment.Cluster{
			KubernetesVersion: "1.35.4", MachineType: "m6i.large", VolumeType: "gp3", VolumeSizeGB: 80,
			AutoScalerMin: 1, AutoScalerMax: 3, MaxSurge: 1, Purpose: "evaluation",
		}},
	}}
}

// updating returns an operation that raises the instance's maximum number of nodes to 5.
func updating(w *fixture) Operation {
	change := environment.UnchangedUpdate(w.instance)
	change.Cluster.AutoScalerMax = 5

	return process.NewOperation(process.Record{ID: "op-2", InstanceID: "instance-1"}, environment.Data{Update: &change},
		time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
}

// run runs the steps of a stage in order, as the engine does, until one of them waits or fails.
func run(t *testing.T, w *fixture, stage string, operation Operation) (Operation, time.Duration, error) {
	t.Helper()

	stages := w.process().Stages
	at := slices.IndexFunc(stages, func(each process.Stage[environment.Data]) bool { return each.Name == stage })

	return stepstest.Run(t, stages[at:at+1], operation)
}

func TestUpdate(t *testing.T) {
	w := newFixture()

	ordered, wait, err := run(t, w, "cluster", updating(w))
	if err != nil || wait != 0 {
		t.Fatalf("runs again after %s, %v", wait, err)
	}

	if _, _, err := run(t, w, "cluster", updating(w)); err != nil || len(w.upgrades) != 1 { // a crash lost the data of the first run
		t.Errorf("ordered under %d keys, %v", len(w.upgrades), err)
	}

	if ordered.WaitingFor != "provisioner operation upgrade-of-op-2" || w.tenant != "ordered-by" || w.runtime != "runtime-1" {
		t.Errorf("waits for %q; called as %s for %s", ordered.WaitingFor, w.tenant, w.runtime)
	}

	want := updating(w).Data.Update.Cluster
	if diff := cmp.Diff(want, w.upgrades["op-2"]); diff != "" || want.AutoScalerMax != 5 {
		t.Errorf("the update's cluster was not stored: -want +got\n%s", diff)
	}

	w.status.State = provisionerclient.StateInProgress
	if _, wait, err := run(t, w, "check", ordered); err != nil || wait != pace || w.instance.Request.Cluster.AutoScalerMax != 3 {
		t.Errorf("recorded before the Provisioner is done: %s, %v", wait, err)
	}

	w.status.State = provisionerclient.StateSucceeded

	checked, wait, err := run(t, w, "check", ordered)
	if err != nil || wait != 0 {
		t.Fatalf("runs again after %s, %v", wait, err)
	}

	for range 2 {
		if _, _, err := run(t, w, "record", checked); err != nil || w.instance.Request.Cluster.AutoScalerMax != 5 {
			t.Errorf("the row is wrong: %d nodes, %v", w.instance.Request.Cluster.AutoScalerMax, err)
		}
	}
}

// TestKubeconfigOfAnOwnCluster changes the kubeconfig of a tenant's own cluster. The update must be recorded once the cluster
// responds to the new kubeconfig, without calling the Provisioner.
func TestKubeconfigOfAnOwnCluster(t *testing.T) {
	w := newFixture()
	w.instance.RuntimeID, w.instance.Request.Cluster = "", environment.Cluster{Own: &environment.OwnCluster{Kubeconfig: "old", ShootName: "s"}}
	w.silent = failure.New(failure.Transient, "the runtime does not respond")

	change := environment.UnchangedUpdate(w.instance)
	change.Cluster.Own = &environment.OwnCluster{Kubeconfig: "new", ShootName: "s"}
	operation := process.NewOperation(process.Record{ID: "op-2", InstanceID: "instance-1"}, environment.Data{Update: &change}, time.Time{})

	operation, _, err := run(t, w, "cluster", operation)
	if err != nil {
		t.Fatal(err)
	}

	if _, wait, err := run(t, w, "check", operation); wait != ownInterval || err != nil || w.probed.Own.Kubeconfig != "new" {
		t.Errorf("an unresponsive cluster is probed again after %s, %v", wait, err)
	}

	w.silent = nil

	for _, stage := range []string{"check", "record"} {
		if _, _, err := run(t, w, stage, operation); err != nil {
			t.Fatalf("%s: %v", stage, err)
		}
	}

	if w.instance.Request.Cluster.Own.Kubeconfig != "new" || len(w.upgrades) > 0 {
		t.Errorf("the kubeconfig is not the new one, or the Provisioner was called: %v", w.upgrades)
	}
}

func TestFailedUpdates(t *testing.T) {
	lost := failure.Wrap(failure.Transient, errors.New("away"), "the database is unreachable")

	cases := map[string]struct {
		reason string
		change func(*fixture)
		wait   time.Duration
		want   failure.Kind
	}{
		"busy": {
			reason: "operations run one at a time, and the feed does not report the end of a foreign operation",
			change: func(w *fixture) { w.refusal = failure.New(failure.Waiting, "busy") }, wait: time.Second,
		},
		"away": {
			reason: "transient errors are retried",
			change: func(w *fixture) { w.refusal = failure.New(failure.Transient, "away") }, want: failure.Transient,
		},
		"refused": {
			reason: "permanent errors are not retried",
			change: func(w *fixture) { w.refusal = failure.New(failure.Permanent, "no such machine") }, want: failure.Permanent,
		},
		"no runtime": {
			reason: "an update without a difference",
			change: func(w *fixture) { w.instance.RuntimeID = "" }, want: failure.Permanent,
		},
		"database away": {
			reason: "the instance is read again",
			change: func(w *fixture) { w.lost = lost }, want: failure.Transient,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newFixture()
			operation := updating(w)
			c.change(w)

			_, wait, err := run(t, w, "cluster", operation)
			if wait != c.wait || c.want != "" && !failure.Is(err, c.want) || c.want == "" && err != nil {
				t.Errorf("%s: runs again after %s, %v", c.reason, wait, err)
			}
		})
	}

	w := newFixture()
	w.lost = lost

	if _, _, err := run(t, w, "record", updating(newFixture())); !failure.Is(err, failure.Transient) {
		t.Errorf("a failed write is not retried: %v", err)
	}
}

// TestModules changes the modules of a runtime, alone and together with its cluster. The runtime keeps its Kyma version.
func TestModules(t *testing.T) {
	for _, nodes := range []int{3, 5} {
		w := newFixture()
		w.instance.Request.Cluster.Kyma = &environment.Kyma{Version: "1.0.0", Modules: []string{"eventing"}}
		w.status.State = provisionerclient.StateSucceeded

		change := environment.UnchangedUpdate(w.instance)
		change.Cluster.Kyma = &environment.Kyma{Version: "1.0.0", Modules: []string{"serverless"}}
		change.Cluster.AutoScalerMax = nodes
		operation := process.NewOperation(process.Record{ID: "op-2", InstanceID: "instance-1"}, environment.Data{Update: &change}, time.Time{})

		for _, stage := range []string{"cluster", "check", "btp-operator", "btp-operator-check", "record"} {
			var err error
			if operation, _, err = run(t, w, stage, operation); err != nil {
				t.Fatalf("%s: %v", stage, err)
			}
		}

		if diff := cmp.Diff(map[string][]string{"op-2-kyma": {"serverless@1.0.0"}}, w.modules); diff != "" {
			t.Errorf("%d nodes: upgrades of Kyma, -want +got\n%s", nodes, diff)
		}

		if shoots := len(w.upgrades); shoots != min(nodes-3, 1) {
			t.Errorf("%d nodes: the cluster was changed %d times", nodes, shoots)
		}

		if diff := cmp.Diff([]string{"serverless"}, w.instance.Request.Cluster.Kyma.Modules); diff != "" {
			t.Errorf("%d nodes: the row, -want +got\n%s", nodes, diff)
		}
	}
}

// TestFormerStages continues an update that a replica of an earlier release began. In that release, the steps for Kyma had separate stages.
// The steps run again and repeat the order under the same key.
func TestFormerStages(t *testing.T) {
	w := newFixture()
	w.instance.Request.Cluster.Kyma = &environment.Kyma{Version: "1.0.0", Modules: []string{"eventing"}}
	w.status.State = provisionerclient.StateSucceeded

	change := environment.UnchangedUpdate(w.instance)
	change.Cluster.Kyma = &environment.Kyma{Version: "1.0.0", Modules: []string{"serverless"}}
	operation := process.NewOperation(process.Record{ID: "op-2", InstanceID: "instance-1"}, environment.Data{Update: &change}, time.Time{})

	for _, stage := range []string{"cluster", "check", "btp-operator"} {
		var err error
		if operation, _, err = run(t, w, stage, operation); err != nil {
			t.Fatalf("%s: %v", stage, err)
		}
	}

	operation.FinishedStages = []string{"cluster", "check", "kyma", "check_kyma"}

	for _, stage := range w.process().Stages {
		if operation.Finished(stage.Name) {
			continue
		}

		var err error
		if operation, _, err = run(t, w, stage.Name, operation); err != nil {
			t.Fatalf("%s: %v", stage.Name, err)
		}
	}

	if diff := cmp.Diff(map[string][]string{"op-2-kyma": {"serverless@1.0.0"}}, w.modules); diff != "" {
		t.Errorf("upgrades of Kyma, -want +got\n%s", diff)
	}

	if diff := cmp.Diff([]string{"serverless"}, w.instance.Request.Cluster.Kyma.Modules); diff != "" {
		t.Errorf("the row, -want +got\n%s", diff)
	}
}
