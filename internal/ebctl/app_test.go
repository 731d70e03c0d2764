package ebctl_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/ebctl"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
)

// stopping is a clock that cancels the context of the command when the command waits for the first time.
type stopping struct {
	fakeClock

	stop context.CancelFunc
}

func (c *stopping) After(time.Duration) <-chan time.Time {
	c.stop()

	return nil
}

func TestInterruptedWaitReportsThatTheOperationContinues(t *testing.T) {
	t.Parallel()

	broker, err := newFakeBroker(scenario{Operations: []script{{
		ID: "op", Frames: []frame{{Operation: map[string]any{"state": "in progress"}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}

	server := httptest.NewServer(broker)
	defer server.Close()

	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	var out, problems strings.Builder

	code := ebctl.App{
		Out: &out, Err: &problems,
		Environment:  func(string) string { return "" },
		Terminal:     func() (follow.Size, bool) { return follow.Size{}, false },
		Clock:        &stopping{stop: stop},
		PollInterval: time.Second,
	}.Run(ctx, []string{"operation", "get", "op", "--wait", "--wait-timeout", "0", "--address", server.URL})

	if code != ebctl.ExitError {
		t.Errorf("got exit code %d, want %d", code, ebctl.ExitError)
	}

	want := "ebctl: stopped waiting for operation op, which continues: context canceled\n"
	if !strings.HasSuffix(problems.String(), want) {
		t.Errorf("interrupted wait: got %q, want %q", problems.String(), want)
	}

	if !strings.Contains(out.String(), "in progress") {
		t.Errorf("the output must contain the last known state, got %q", out.String())
	}
}
