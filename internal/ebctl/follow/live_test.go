package follow_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

var errUnavailable = errors.New("the broker does not answer")

func at(seconds int) time.Time {
	return time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
}

// moments returns the moments of an operation from its acceptance to its end.
func moments() []follow.Moment {
	accepted := operatorapi.Operation{
		ID: "op-1", InstanceID: "instance-1", Kind: "provision", State: "pending", CreatedAt: at(0),
		Stages: []string{"start", "create_runtime", "check_runtime"},
	}

	running := accepted
	running.State, running.Stage, running.Step, running.Attempt = "in progress", "create_runtime", "Create_Runtime", 1
	running.FinishedStages, running.Replica = []string{"start"}, "replica-1"
	start := at(2)
	running.StepBegan = start

	held := running
	next := at(13)
	held.Replica, held.NextRun = "", next
	held.Problem = operatorapi.Problem{Message: "connection refused", Component: "provisioner"}

	waits := held
	waits.Problem, waits.Stage, waits.Step, waits.Attempt = operatorapi.Problem{}, "check_runtime", "check_runtime", 2
	waits.FinishedStages = []string{"start", "create_runtime"}
	waits.Why = "the cluster is being\ncreated \x1b[31m"

	done := waits
	finished := at(72)
	done.State, done.FinishedAt, done.Why = "succeeded", finished, ""

	failed := waits
	failed.State, failed.FinishedAt = "failed", finished
	failed.Problem = operatorapi.Problem{Message: "quota exceeded"}

	moments := []follow.Moment{
		{Now: at(0), Next: at(1), PollError: errUnavailable},
		{Now: at(1), Operation: accepted},
		{Now: at(5), Operation: running},
		{Now: at(10), Operation: held},
		{Now: at(11), Operation: held, PollError: errUnavailable, Next: at(14)},
		{Now: at(12), Operation: waits},
		{Now: at(72), Operation: failed},
		{Now: at(72), Operation: done},
	}

	for i := range moments {
		moments[i].Noun = "instance"
	}

	return moments
}

func TestLive(t *testing.T) {
	t.Parallel()

	screen := &terminal{t: t, width: 80}
	live := follow.NewLive(screen, func() follow.Size { return follow.Size{Width: 80, Height: 24} })

	// The view must not overwrite earlier output.
	screen.Write([]byte("$ ebctl\n"))

	want := []string{
		`waiting for the first response
  ! the broker does not answer; retrying in 1s`,

		`provision of instance instance-1: pending, 1s
  · start
  · create_runtime
  · check_runtime
  queued behind earlier operations of the instance`,

		`provision of instance instance-1: in progress, 5s
  ✓ start
  ▸ create_runtime  Create_Runtime, attempt 1, 3s
  · check_runtime`,

		`provision of instance instance-1: in progress, 10s
  ✓ start
  ▸ create_runtime  Create_Runtime, attempt 1, 8s
      retrying: connection refused (provisioner); continues in 3s
  · check_runtime`,

		`provision of instance instance-1: in progress, 11s
  ✓ start
  ▸ create_runtime  Create_Runtime, attempt 1, 9s
      retrying: connection refused (provisioner); continues in 2s
  · check_runtime
  ! the broker does not answer; retrying in 3s`,

		`provision of instance instance-1: in progress, 12s
  ✓ start
  ✓ create_runtime
  ▸ check_runtime  attempt 2, 10s
      waiting: the cluster is being created [31m; continues in 1s`,

		`provision of instance instance-1: failed, 1m12s
  ✓ start
  ✓ create_runtime
  ✗ check_runtime  attempt 2
      quota exceeded`,

		`provision of instance instance-1: succeeded, 1m12s
  ✓ start
  ✓ create_runtime
  ✓ check_runtime`,
	}

	for number, moment := range moments() {
		live.Show(moment)

		if diff := cmp.Diff("$ ebctl\n"+want[number], screen.String()); diff != "" {
			t.Errorf("drawing %d, -want +got:\n%s", number, diff)
		}
	}
}

func TestLiveFitsTheTerminal(t *testing.T) {
	t.Parallel()

	const width, height = 20, 4

	screen := &terminal{t: t, width: width}
	live := follow.NewLive(screen, func() follow.Size { return follow.Size{Width: width, Height: height} })

	for _, moment := range moments() {
		live.Show(moment)

		if got := len(screen.lines); got >= height {
			t.Errorf("%d lines and the cursor do not fit on a terminal with %d lines:\n%s", got, height, screen)
		}
	}

	if want := "  ✓ start\n  ✓ create_runtime\n  ✓ check_runtime"; screen.String() != want {
		t.Errorf("the screen must show the last lines: got\n%s\nwant\n%s", screen, want)
	}
}

func TestLiveOnATerminalOfUnknownSize(t *testing.T) {
	t.Parallel()

	var out strings.Builder

	live := follow.NewLive(&out, func() follow.Size { return follow.Size{} })
	live.Show(moments()[3])

	if !strings.Contains(out.String(), "connection refused (provisioner); continues in 3s") {
		t.Errorf("lines were cut: %q", out.String())
	}
}

func TestLines(t *testing.T) {
	t.Parallel()

	var out strings.Builder

	lines := follow.NewLines(&out)

	for _, moment := range moments() {
		lines.Show(moment)

		// Passing time alone is not a change.
		moment.Now = moment.Now.Add(time.Second)
		lines.Show(moment)
	}

	want := `    0s  the broker does not answer; retrying in 1s
    1s  pending: queued behind earlier operations of the instance
    5s  in progress: create_runtime (2 of 3), Create_Runtime, attempt 1
   10s  in progress: create_runtime (2 of 3), Create_Runtime, attempt 1: retrying: connection refused (provisioner)
   11s  the broker does not answer; retrying in 3s
   12s  in progress: check_runtime (3 of 3), attempt 2: waiting: the cluster is being created [31m
 1m12s  failed: check_runtime (3 of 3), attempt 2: quota exceeded
 1m12s  succeeded
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
