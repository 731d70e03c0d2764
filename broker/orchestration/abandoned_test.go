package orchestration_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// fail ends the conductor as a defect would.
func (f *stepped) fail(conductor process.Record) {
	f.Helper()

	conductor.State, conductor.FinishedAt = process.Failed, f.clock.Now()
	if _, err := f.operations.Save(f.Context(), process.Progress{Record: conductor, Release: true, Now: f.clock.Now()}); err != nil {
		f.Fatal(err)
	}
}

// endAbandoned ends abandoned orchestrations, and checks that they are exactly those listed in want.
func (f *stepped) endAbandoned(want ...string) {
	f.Helper()

	ended, err := f.EndAbandoned(f.Context())
	if err != nil || !cmp.Equal(want, ended) {
		f.Fatalf("ended %v, want %v: %v", ended, want, err)
	}
}

func TestAbandoned(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(3)

		conductor := f.start(environment.KindUpgradeCluster, all(1))
		f.advance(conductor)
		f.endAbandoned() // it has a conductor
		f.fail(conductor)
		f.endAbandoned(f.id)
		f.endAbandoned() // it has ended

		if got, _ := f.get(f.id); got.State != environment.OrchestrationFailed {
			f.Errorf("got %+v", got)
		}

		for range 2 { // the second retry finds a conductor
			if _, err := f.Retry(f.Context(), f.id, orchestration.Retry{}); err != nil {
				f.Fatal(err)
			}
		}

		f.endAbandoned()
		f.end(process.Succeeded)

		next := f.claim()
		for range 3 {
			f.advance(next)
			f.end(process.Succeeded)
		}

		if progress := f.advance(next); !progress.Done || f.finish(next) != nil {
			f.Errorf("got %+v", progress)
		}

		if got, _ := f.get(f.id); got.State != environment.OrchestrationSucceeded || got.Description != "3 succeeded" {
			f.Errorf("got %+v", got)
		}

		f.wantUpgrades(1)
	})
}

// TestAbandonedWithoutTargets continues an orchestration whose conductor failed before it selected the targets.
func TestAbandonedWithoutTargets(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(1)
		f.id, _ = f.order(all(1))
		f.fail(f.claim())
		f.endAbandoned(f.id)

		if _, err := f.Retry(f.Context(), f.id, orchestration.Retry{}); err != nil {
			f.Fatal(err)
		}

		next := f.claim()
		if err := f.Plan(f.Context(), next); err != nil {
			f.Fatal(err)
		}

		f.advance(next)
		f.wantUpgrades(1)
	})
}

func TestAbandonedWhileCanceling(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(2)

		conductor := f.start(environment.KindUpgradeCluster, all(1))
		f.advance(conductor)

		if err := f.Cancel(f.Context(), f.id); err != nil {
			f.Fatal(err)
		}

		f.fail(conductor)
		f.endAbandoned(f.id)

		if got, _ := f.get(f.id); got.State != environment.OrchestrationCanceled {
			f.Errorf("got %+v", got)
		}

		f.wantStats("pending targets are canceled", map[string]int{"in progress": 1, "canceled": 1})

		if _, err := f.Retry(f.Context(), f.id, orchestration.Retry{}); err != nil {
			f.Fatal(err)
		}

		f.endAbandoned()
	})
}

// TestRetryOfASuccess checks that a retry of a succeeded orchestration changes nothing.
func TestRetryOfASuccess(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(1)

		conductor := f.start(environment.KindUpgradeCluster, all(1))
		f.advance(conductor)
		f.end(process.Succeeded)

		if progress := f.advance(conductor); !progress.Done || f.finish(conductor) != nil {
			f.Errorf("got %+v", progress)
		}

		if _, err := f.Retry(f.Context(), f.id, orchestration.Retry{}); err != nil {
			f.Fatal(err)
		}

		if got, _ := f.get(f.id); got.State != environment.OrchestrationSucceeded {
			f.Errorf("got %+v", got)
		}
	})
}
