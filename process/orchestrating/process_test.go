package orchestrating

import (
	"context"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// fake returns the progress or the error.
type fake struct {
	progress Progress
	err      error
}

func (f fake) Plan(context.Context, process.Record) error                { return f.err }
func (f fake) Advance(context.Context, process.Record) (Progress, error) { return f.progress, f.err }
func (f fake) End(process.Record) process.Effect                         { return "the effect" }

func TestRunTargets(t *testing.T) {
	for name, c := range map[string]struct {
		reason   string
		progress Progress
		want     time.Duration
		effect   process.Effect
	}{
		"done":       {"the orchestration ends", Progress{Text: "x", Done: true}, 0, "the effect"},
		"waiting":    {"the end of an upgrade wakes the conductor", Progress{Text: "x"}, time.Minute, nil},
		"next":       {"the next target is due", Progress{Text: "x", Next: now.Add(7 * time.Second)}, 7 * time.Second, nil},
		"much later": {"upgrades that end while pending wake nobody", Progress{Text: "x", Next: now.Add(time.Hour)}, time.Minute, nil},
		"overdue":    {"more can start", Progress{Text: "x", Next: now.Add(-time.Hour)}, 10 * time.Millisecond, nil},
	} {
		t.Run(name, func(t *testing.T) {
			operation := process.NewOperation(process.Record{}, environment.Data{}, now)

			got, wait, err := runTargets(fake{progress: c.progress}).Run(t.Context(), operation, logging.Discard())
			if err != nil || wait != c.want || got.Effect != c.effect || got.Description != "x" {
				t.Errorf("%s: waits %s, want %s: %+v, %v", c.reason, wait, c.want, got, err)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	failing := fake{err: failure.New(failure.Transient, "no database")}

	for _, step := range []Step{planTargets(failing), runTargets(failing)} {
		operation := process.NewOperation(process.Record{}, environment.Data{}, now)

		if _, _, err := step.Run(t.Context(), operation, logging.Discard()); !failure.Is(err, failure.Transient) {
			t.Errorf("%s: %v", step.Name(), err)
		}
	}
}

func TestProcess(t *testing.T) {
	if err := Process(Options{fake{}}).Validate(); err != nil {
		t.Error(err)
	}
}
