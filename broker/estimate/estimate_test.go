package estimate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/broker/estimate"
	"github.com/environment-broker/environment-broker/storage/instances"
)

// history always returns the same durations or the same error.
type history struct {
	durations []instances.Duration
	err       error
}

func (p *history) Durations(context.Context) ([]instances.Duration, error) { return p.durations, p.err }

func TestEnd(t *testing.T) {
	t.Parallel()

	took := func(kind, plan string, minutes ...int) []instances.Duration {
		var all []instances.Duration
		for _, minute := range minutes {
			all = append(all, instances.Duration{Kind: kind, PlanID: plan, Took: time.Duration(minute) * time.Minute})
		}

		return all
	}

	history := &history{}
	history.durations = append(history.durations, took("provision", "aws", 5, 4, 90)...)
	history.durations = append(history.durations, took("provision", "gcp", 8)...)
	history.durations = append(history.durations, took("deprovision", "", 2)...)
	history.durations = append(history.durations, took("update", "aws", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)...)
	history.durations = append(history.durations, took("update", "aws", 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9)...)

	estimator := estimate.New(history)
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	if got := estimator.End("provision", "aws", start); !got.IsZero() {
		t.Errorf("got the end %s without any history operation", got)
	}

	if err := estimator.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}

	history.err = errors.New("away")
	if err := estimator.Refresh(t.Context()); !errors.Is(err, history.err) {
		t.Errorf("got %v during an outage, want an error", err)
	}

	cases := map[string]struct {
		reason     string
		kind, plan string
		want       int // minutes, 0 for unknown
	}{
		"median":        {"outliers have no effect", "provision", "aws", 5},
		"plan":          {"each plan has its own estimate", "provision", "gcp", 8},
		"unknown plan":  {"the kind is the fallback", "provision", "new", 8},
		"no plan":       {"a platform need not send the plan", "provision", "", 8},
		"removed":       {"a removed instance no longer has a plan", "deprovision", "aws", 2},
		"unknown kind":  {"no operation of the kind has succeeded", "resume", "aws", 0},
		"newest counts": {"the estimate follows the newest operations", "update", "aws", 1},
	}

	for name, c := range cases {
		var want time.Time
		if c.want > 0 {
			want = start.Add(time.Duration(c.want) * time.Minute)
		}

		if got := estimator.End(c.kind, c.plan, start); !got.Equal(want) {
			t.Errorf("%s: %s: got %s, want %s", name, c.reason, got, want)
		}
	}

	var none *estimate.Estimator
	if !none.End("provision", "aws", start).IsZero() || !estimator.End("provision", "aws", time.Time{}).IsZero() {
		t.Error("want no end without an estimator, or without a start")
	}
}
