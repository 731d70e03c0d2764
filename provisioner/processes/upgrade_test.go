package processes

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// upgradeFixture is a garden with one Shoot, the cluster of the Shoot, and the row of the runtime.
type upgradeFixture struct {
	Shoots
	Clusters
	Runtimes

	shoot *gardencorev1beta1.Shoot
	err   error

	changed        *shoot.Objects
	changedFrom    string                   // resource version of the Shoot that the step had read
	written        *gardencorev1beta1.Shoot // by a change or a hibernation
	annotations    map[string]string        // of a hibernation
	tidied         *gardencorev1beta1.Shoot
	administrators []string
	recorded       string
	position       int64
}

func newUpgrade(change func(present *gardencorev1beta1.Shoot)) *upgradeFixture {
	present := buildVersion(runtimes.Runtime{ID: runtimeID, ShootName: shootName}, "1.34.7")
	present.ResourceVersion = "17"

	if change != nil {
		change(present)
	}

	return &upgradeFixture{shoot: present}
}

func buildVersion(runtime runtimes.Runtime, version string) *gardencorev1beta1.Shoot {
	return &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Name: runtime.ShootName, Annotations: map[string]string{shoot.AnnotationRuntimeID: runtime.ID}},
		Spec:       gardencorev1beta1.ShootSpec{Kubernetes: gardencorev1beta1.Kubernetes{Version: version}},
	}
}

func (f *upgradeFixture) Get(context.Context, string) (*gardencorev1beta1.Shoot, error) {
	if f.err != nil {
		return nil, f.err
	}

	return f.shoot.DeepCopy(), nil
}

func (f *upgradeFixture) Retry(context.Context, *gardencorev1beta1.Shoot) error { return f.err }

func (f *upgradeFixture) Change(_ context.Context, read *gardencorev1beta1.Shoot, objects *shoot.Objects) error {
	f.changed, f.changedFrom, f.written = objects, read.ResourceVersion, objects.Shoot

	return f.err
}

func (f *upgradeFixture) SetHibernation(_ context.Context, read *gardencorev1beta1.Shoot, asleep bool, annotations map[string]string) error {
	f.written, f.annotations = read.DeepCopy(), annotations
	f.written.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: &asleep}

	return f.err
}

func (f *upgradeFixture) Tidy(_ context.Context, _ string, present *gardencorev1beta1.Shoot) error {
	f.tidied = present

	return f.err
}

func (f *upgradeFixture) SetAdministrators(ctx context.Context, _ string, users []string, confirm func(context.Context) error) error {
	if err := confirm(ctx); err != nil {
		return err
	}

	f.administrators = users

	return f.err
}

func (f *upgradeFixture) Configured(_ context.Context, runtime runtimes.Runtime, position int64) error {
	f.recorded, f.position = string(runtime.Configuration), position

	return f.err
}

func (f *upgradeFixture) upgrade() process.Process[operation.Data] {
	return f.options().upgrade()
}

func (f *upgradeFixture) options() Options {
	return Options{
		Shoots: f, Clusters: f, Runtimes: f, Poll: time.Second, WorkPoll: time.Second, Limit: time.Hour,
		Timeouts: Timeouts{
			Refresh: time.Hour, Upgrade: time.Hour, Bindings: time.Hour, Hibernation: time.Hour, KymaUpgradeStart: time.Minute, KymaUpgrade: time.Hour,
		},
		Build: func(runtime runtimes.Runtime, _ string) (*shoot.Objects, error) {
			return &shoot.Objects{Shoot: buildVersion(runtime, "1.34.5")}, nil
		},
	}
}

const wanted = `{"clusterConfig": {"administrators": ["joe@example.com"]}}`

// run runs the steps of one stage of an upgrade in order. It stops at the first step that waits or fails, and returns
// that result.
func (f *upgradeFixture) run(t *testing.T, stage string) (op operation.Operation, wait time.Duration, err error) {
	t.Helper()

	return f.runOf(t, f.upgrade(), stage)
}

func (f *upgradeFixture) runOf(t *testing.T, whole process.Process[operation.Data], stage string) (op operation.Operation, wait time.Duration, err error) {
	t.Helper()

	op = process.NewOperation(process.Record{ID: "op-2", InstanceID: runtimeID, Position: 7}, operation.Data{
		Runtime: runtimes.Runtime{ID: runtimeID, ShootName: shootName, Configuration: json.RawMessage(wanted)},
	}, now)

	for _, each := range whole.Stages {
		if each.Name != stage {
			continue
		}

		for _, task := range each.Steps {
			if op, wait, err = task.Step.Run(t.Context(), op, logging.Discard()); err != nil || wait > 0 {
				return op, wait, err
			}
		}

		return op, wait, err
	}

	t.Fatalf("no stage %s", stage)

	return op, wait, err
}

func TestUpgradeStages(t *testing.T) {
	process := newUpgrade(nil).upgrade()
	if err := process.Validate(); err != nil {
		t.Error(err)
	}

	want := []string{
		"UpgradingShoot", "WaitingForShootNewVersion", "WaitingForShootUpgrade", "CreatingBindingsForOperators", "RecordingConfiguration",
	}
	if diff := cmp.Diff(want, process.StageNames()); diff != "" {
		t.Errorf("running operations store the names of stages, -want +got:\n%s", diff)
	}
}

func TestChangeShoot(t *testing.T) {
	f := newUpgrade(nil)

	for range 2 {
		op, wait, err := f.run(t, "UpgradingShoot")
		if err != nil || wait != 0 || op.WaitingFor != operation.ShootEvent(shootName) {
			t.Fatalf("got wait %s, event %q, %v", wait, op.WaitingFor, err)
		}

		if version := f.changed.Shoot.Spec.Kubernetes.Version; version != "1.34.7" || f.changedFrom != "17" {
			t.Errorf("wrote version %s over resource version %s, want 1.34.7 over 17", version, f.changedFrom)
		}
	}
}

func TestChangeShootFailures(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		fixture *upgradeFixture
		want    failure.Kind
	}{
		"gone": {
			"a change does not create a missing cluster",
			&upgradeFixture{err: failure.New(failure.NotFound, "no such Shoot")}, failure.NotFound,
		},
		"of another runtime": {
			"a cluster of another runtime is not changed",
			newUpgrade(func(present *gardencorev1beta1.Shoot) { present.Annotations[shoot.AnnotationRuntimeID] = "runtime-2" }), failure.Conflict,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := c.fixture.run(t, "UpgradingShoot"); !failure.Is(err, c.want) || c.fixture.changed != nil {
				t.Errorf("%s: got %v, wrote %v", c.reason, err, c.fixture.changed)
			}
		})
	}
}

func TestUpgradeWaits(t *testing.T) {
	at := func(observed int64, state gardencorev1beta1.LastOperationState) func(*gardencorev1beta1.Shoot) {
		return func(present *gardencorev1beta1.Shoot) {
			present.Generation, present.Status.ObservedGeneration = 2, observed
			present.Status.LastOperation = &gardencorev1beta1.LastOperation{State: state}
		}
	}

	for name, c := range map[string]struct {
		reason              string
		present             func(*gardencorev1beta1.Shoot)
		refreshed, upgraded bool // whether the first and the second wait have ended
		fails               bool
	}{
		"earlier success": {"a success of the earlier generation is ignored", at(1, "Succeeded"), false, false, false},
		"earlier failure": {"a failure of the earlier generation is ignored", at(1, "Failed"), false, false, false},
		"working":         {"Gardener works on this generation", at(2, "Processing"), true, false, false},
		"done":            {"Gardener has finished this generation", at(2, "Succeeded"), true, true, false},
		"failed":          {"Gardener has failed to apply this generation", at(2, "Failed"), true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newUpgrade(c.present)

			if _, wait, err := f.run(t, "WaitingForShootNewVersion"); err != nil || (wait == 0) != c.refreshed {
				t.Errorf("%s: the first stage: got wait %s, %v", c.reason, wait, err)
			}

			_, wait, err := f.run(t, "WaitingForShootUpgrade")
			if (err != nil) != c.fails || (wait == 0 && err == nil) != c.upgraded {
				t.Errorf("%s: the second stage: got wait %s, %v", c.reason, wait, err)
			}
		})
	}
}

func TestStagesAfterTheChange(t *testing.T) {
	f := newUpgrade(nil)

	if _, wait, err := f.run(t, "CreatingBindingsForOperators"); err != nil || wait != 0 || len(f.administrators) != 1 {
		t.Errorf("administrators %v: got wait %s, %v", f.administrators, wait, err)
	}

	if _, wait, err := f.run(t, "RecordingConfiguration"); err != nil || wait != 0 {
		t.Errorf("got wait %s, %v", wait, err)
	}

	if f.recorded != wanted || f.position != 7 || f.tidied == nil {
		t.Errorf("recorded %s of position %d, tidied %v", f.recorded, f.position, f.tidied)
	}

	away := &upgradeFixture{err: failure.New(failure.Transient, "away")}
	for _, stage := range []string{"UpgradingShoot", "WaitingForShootUpgrade", "CreatingBindingsForOperators", "RecordingConfiguration"} {
		if _, wait, err := away.run(t, stage); !failure.Is(err, failure.Transient) || wait != 0 {
			t.Errorf("%s, with all dependencies unavailable: got wait %s, %v", stage, wait, err)
		}
	}
}

func TestHibernation(t *testing.T) {
	settledAs := func(hibernated bool) func(*gardencorev1beta1.Shoot) {
		return func(present *gardencorev1beta1.Shoot) {
			present.Status.LastOperation = &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateSucceeded}
			present.Status.IsHibernated = hibernated
		}
	}

	for name, c := range map[string]struct {
		reason             string
		process            func(Options) process.Process[operation.Data]
		ordering, waiting  string
		asleep, hibernated bool
		done               bool
	}{
		"hibernating": {"Gardener updates the hibernation status after its operation", Options.hibernate, "HibernatingShoot", "WaitForHibernation", true, false, false},
		"hibernated":  {"the cluster is hibernated", Options.hibernate, "HibernatingShoot", "WaitForHibernation", true, true, true},
		"waking":      {"the cluster is still waking up", Options.wakeUp, "WakingShoot", "WaitForWakeUp", false, true, false},
		"awake":       {"the cluster is awake", Options.wakeUp, "WakingShoot", "WaitForWakeUp", false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newUpgrade(settledAs(c.hibernated))
			whole := c.process(f.options())

			if err := whole.Validate(); err != nil {
				t.Error(err)
			}

			op, _, err := f.runOf(t, whole, c.ordering)
			if err != nil || *f.written.Spec.Hibernation.Enabled != c.asleep || op.Data.Asleep != c.asleep {
				t.Errorf("%s: wrote %v, %v", c.reason, f.written, err)
			}

			if _, wait, err := f.runOf(t, whole, c.waiting); err != nil || (wait == 0) != c.done {
				t.Errorf("%s: got wait %s, %v", c.reason, wait, err)
			}
		})
	}
}

// TestHibernationAppliesNoOrder hibernates a cluster whose Shoot has a change of a failed upgrade. The runtime still has its former order,
// which the hibernation must not apply.
func TestHibernationAppliesNoOrder(t *testing.T) {
	f := newUpgrade(func(present *gardencorev1beta1.Shoot) {
		present.Spec.Purpose = new(gardencorev1beta1.ShootPurposeProduction)
	})

	options := f.options()
	options.Traceparent = func(process.Record) string { return "00-trace" }

	for stage, whole := range map[string]process.Process[operation.Data]{"HibernatingShoot": options.hibernate(), "WakingShoot": options.wakeUp()} {
		if _, _, err := f.runOf(t, whole, stage); err != nil {
			t.Fatal(err)
		}

		f.written.Spec.Hibernation = nil
		if diff := cmp.Diff(f.shoot.Spec, f.written.Spec); diff != "" {
			t.Errorf("%s changes the Shoot, -before +after:\n%s", stage, diff)
		}

		if f.annotations[shoot.AnnotationOperationID] != "op-2" || f.annotations[shoot.AnnotationTraceparent] != "00-trace" {
			t.Errorf("%s sets the annotations %v", stage, f.annotations)
		}
	}
}

func TestUpgradeOfAHibernatedCluster(t *testing.T) {
	f := newUpgrade(func(present *gardencorev1beta1.Shoot) {
		present.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
	})

	op, _, err := f.run(t, "UpgradingShoot")
	if err != nil || !*f.changed.Shoot.Spec.Hibernation.Enabled {
		t.Fatalf("the upgrade wakes the cluster: %v, %v", f.changed, err)
	}

	for _, stage := range f.upgrade().Stages {
		if stage.Name == "CreatingBindingsForOperators" && stage.Steps[0].When.Met(op) {
			t.Error("the API server of a hibernated cluster does not run, so the administrators must be set after it wakes up")
		}
	}
}
