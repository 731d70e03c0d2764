package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
)

func TestPeriodicWorkStartsAtOnceAndSurvivesErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 150*time.Minute)
		defer stop()

		logger, hook := logtest.NewNullLogger()
		began := time.Now()

		var runs []time.Duration

		part := lifecycle.Periodic{Name: "sweep", Every: time.Hour, Clock: clock.RealClock{}, Log: logger, Work: func(context.Context) error {
			runs = append(runs, time.Since(began))
			if len(runs) == 2 {
				return errors.New("the database is down")
			}

			return nil
		}}.Part()

		if err := part.Run(ctx); err != nil {
			t.Errorf("a requested stop returns %v", err)
		}

		if diff := cmp.Diff([]time.Duration{0, time.Hour, 2 * time.Hour}, runs); diff != "" {
			t.Errorf("runs: -want +got\n%s", diff)
		}

		if len(hook.AllEntries()) != 1 || hook.LastEntry().Message != "sweep: failed, retrying in 1h0m0s" {
			t.Errorf("want one log line for the one failure, got %v", hook.AllEntries())
		}
	})
}

func TestPauseEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()

		if err := lifecycle.Pause(t.Context(), clock.RealClock{}, time.Second); err != nil || time.Since(began) != time.Second {
			t.Errorf("a pause of a second takes %s, %v", time.Since(began), err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		if err := lifecycle.Pause(ctx, clock.RealClock{}, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 2*time.Second {
			t.Errorf("a canceled pause ends after %s with %v", time.Since(began), err)
		}
	})
}
