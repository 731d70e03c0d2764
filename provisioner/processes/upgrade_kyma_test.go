package processes

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

func TestUpgradeAndRollBackOfKyma(t *testing.T) {
	f := newUpgrade(nil)
	want := []string{"StartingUpgrade", "WaitingForInstallation", "UpdatingUpgradeState"}

	upgrade, rollBack := f.options().upgradeKyma(operation.KindUpgrade), f.options().upgradeKyma(operation.KindRollBack)
	if upgrade.Kind != operation.KindUpgrade || rollBack.Kind != operation.KindRollBack {
		t.Errorf("got kinds %s and %s", upgrade.Kind, rollBack.Kind)
	}

	for _, whole := range []interface {
		Validate() error
		StageNames() []string
	}{upgrade, rollBack} {
		if err := whole.Validate(); err != nil {
			t.Error(err)
		}

		if diff := cmp.Diff(want, whole.StageNames()); diff != "" {
			t.Errorf("clients read the names of stages, -want +got:\n%s", diff)
		}
	}

	whole := f.options().upgradeRuntime()
	if err := whole.Validate(); err != nil || whole.Kind != operation.KindUpgradeRuntime {
		t.Errorf("kind %s, %v", whole.Kind, err)
	}

	want = append([]string{"UpgradingShoot", "WaitingForShootNewVersion", "WaitingForShootUpgrade"}, want...)
	if diff := cmp.Diff(want, whole.StageNames()); diff != "" {
		t.Errorf("Kubernetes is upgraded before Kyma, -want +got:\n%s", diff)
	}

	for range 2 {
		if _, wait, err := f.runOf(t, rollBack, "UpdatingUpgradeState"); err != nil || wait != 0 || f.recorded != wanted || f.position != 7 {
			t.Errorf("got wait %s, recorded %q of position %d, %v", wait, f.recorded, f.position, err)
		}
	}

	f.err = failure.New(failure.Transient, "the database is unavailable")
	if _, _, err := f.runOf(t, upgrade, "UpdatingUpgradeState"); !failure.Is(err, failure.Transient) {
		t.Errorf("a failed write must be retried: got %v", err)
	}
}
