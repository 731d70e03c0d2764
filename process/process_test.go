package process_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
)

func TestProcessesAreCheckedAtStart(t *testing.T) {
	good := func() process.Process[data] {
		return process.Process[data]{Kind: "test", Limit: time.Hour, Stages: []process.Stage[data]{stage("only", succeeding("A"))}}
	}

	cases := map[string]struct {
		reason string
		spoil  func(*process.Process[data])
		want   string
	}{
		"no kind":          {"the kind identifies the process", func(p *process.Process[data]) { p.Kind = "" }, "no kind"},
		"no limit":         {"every operation needs a limit", func(p *process.Process[data]) { p.Limit = 0 }, "needs a limit"},
		"no stage":         {"a process needs a stage", func(p *process.Process[data]) { p.Stages = nil }, "at least one stage"},
		"stage twice":      {"stage names are unique", func(p *process.Process[data]) { p.Stages = append(p.Stages, stage("only", succeeding("B"))) }, "used twice"},
		"stage of no name": {"stages need a name", func(p *process.Process[data]) { p.Stages[0].Name = "" }, "is empty"},
		"no step":          {"a stage needs a step", func(p *process.Process[data]) { p.Stages[0].Steps = nil }, "no step"},
		"step twice":       {"step names are unique", func(p *process.Process[data]) { p.Stages = append(p.Stages, stage("next", succeeding("A"))) }, "used twice"},
		"step of no name":  {"steps need a name", func(p *process.Process[data]) { p.Stages[0].Steps[0].Step = succeeding("") }, "has no name"},
		"condition":        {"operators read the condition", func(p *process.Process[data]) { p.Stages[0].Steps[0].When.Off = true }, "without a text"},
		"policy":           {"a retry policy needs a window", func(p *process.Process[data]) { p.Stages[0].Retry.Window = 0 }, "Window > 0"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			broken := good()
			c.spoil(&broken)

			_, err := process.NewEngine(nil, process.DefaultConfig(), clock.RealClock{}, logging.Discard(), broken)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want an error with %q", c.reason, err, c.want)
			}
		})
	}

	if _, err := process.NewEngine(nil, process.DefaultConfig(), clock.RealClock{}, logging.Discard(), good(), good()); err == nil {
		t.Error("two processes of the same kind are accepted")
	}

	if _, err := process.NewEngine[data](nil, process.DefaultConfig(), clock.RealClock{}, logging.Discard()); err == nil {
		t.Error("an engine without processes is accepted")
	}

	if _, err := process.NewEngine(nil, process.Config{}, clock.RealClock{}, logging.Discard(), good()); err == nil {
		t.Error("an engine without workers is accepted")
	}
}

func TestRetryPolicyIntervals(t *testing.T) {
	policy := process.RetryPolicy{First: time.Second, Cap: 10 * time.Second, Factor: 3, Jitter: 0.5, Window: time.Hour}

	for attempt, want := range map[int]time.Duration{1: time.Second, 2: 3 * time.Second, 3: 9 * time.Second, 4: 10 * time.Second, 400: 10 * time.Second} {
		for range 50 {
			if got := policy.Interval(attempt); got < want || got > want*3/2 {
				t.Errorf("attempt %d waits %s, want %s to half as much again", attempt, got, want)
			}
		}
	}
}
