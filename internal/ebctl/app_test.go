package ebctl_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/ebctl"
	"github.com/environment-broker/environment-broker/internal/ebctl/brokertest"
	"github.com/environment-broker/environment-broker/internal/ebctl/progress"
)

// stopping is a clock whose user has enough as soon as there is something to wait for.
type stopping struct {
	brokertest.Clock

	stop context.CancelFunc
}

func (c *stopping) After(time.Duration) <-chan time.Time {
	c.stop()

	return nil
}

func TestStoppedWaitTellsThatTheOperationGoesOn(t *testing.T) {
	t.Parallel()

	broker, err := brokertest.New(brokertest.Scenario{Operations: []brokertest.Script{{
		ID: "op", Frames: []brokertest.Frame{{Operation: map[string]any{"state": "in progress"}}},
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
		Terminal:     func() (progress.Size, bool) { return progress.Size{}, false },
		Clock:        &stopping{stop: stop},
		PollInterval: time.Second,
	}.Run(ctx, []string{"operation", "get", "op", "--wait", "--wait-timeout", "0", "--address", server.URL})

	if code != ebctl.ExitError {
		t.Errorf("got exit code %d, want %d", code, ebctl.ExitError)
	}

	want := "ebctl: no longer waiting for operation op, which goes on: context canceled\n"
	if !strings.HasSuffix(problems.String(), want) {
		t.Errorf("who stops a wait has not stopped the operation: got %q, want %q", problems.String(), want)
	}

	if !strings.Contains(out.String(), "in progress") {
		t.Errorf("what is known by then is shown, got %q", out.String())
	}
}
