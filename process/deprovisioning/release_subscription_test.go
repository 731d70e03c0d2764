package deprovisioning

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// fakePool is an account pool that records the released instances.
type fakePool struct {
	err      error
	released []string
}

func (p *fakePool) Release(_ context.Context, instance environment.Instance) error {
	if p.err == nil {
		p.released = append(p.released, instance.ID)
	}

	return p.err
}

func TestReleaseSubscription(t *testing.T) {
	pool := &fakePool{err: failure.New(failure.Waiting, "the cluster c-1234567 still uses the account")}
	step, operation := releaseSubscription(pool), newOperation(environment.Data{Instance: instance()})

	if _, wait, err := run(t, step, operation); wait != 10*time.Second || err != nil {
		t.Errorf("while the cluster exists, the step runs again after %s, %v", wait, err)
	}

	pool.err = nil
	operation = done(t, step, operation)
	done(t, step, operation)

	if diff := cmp.Diff([]string{instanceID, instanceID}, pool.released); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestOnlyDeletionsReleaseTheAccount checks the stages: suspended instances keep their accounts.
func TestOnlyDeletionsReleaseTheAccount(t *testing.T) {
	options := Options{Accounts: &fakePool{}, Kind: ours, Limit: time.Hour}

	stages := Process(options).StageNames()
	if want := []string{"Check_Runtime_Removal", "Delete_Kubeconfig", stepRelease, "Remove_Instance"}; !slices.Equal(stages[len(stages)-len(want):], want) {
		t.Errorf("a deletion releases the account once the cluster is gone: %v", stages)
	}

	if stages := Suspension(options).StageNames(); slices.Contains(stages, stepRelease) {
		t.Errorf("a suspension releases the account: %v", stages)
	}

	release := Process(options).Stages[len(stages)-2].Steps[0]
	if !release.Skippable || !release.When.Met(newOperation(environment.Data{Instance: instance()})) || release.When.Met(newOperation(environment.Data{})) {
		t.Errorf("operators may skip the release, and a cluster that the tenant brings has no account: %+v", release)
	}
}
