package follow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// fakeClock is a clock that advances by the duration of each wait, so waiting takes no real time.
type fakeClock struct{ now time.Time }

func (c *fakeClock) Now() time.Time { return c.now }

func (c *fakeClock) After(d time.Duration) <-chan time.Time {
	c.now = c.now.Add(d)

	passed := make(chan time.Time, 1)
	passed <- c.now

	return passed
}

type answer struct {
	state operatorapi.OperationState
	rest  time.Duration
	err   error
}

// source returns its answers in order and then repeats the last one. It records the times of the calls.
type source struct {
	clock   *fakeClock
	start   time.Time
	answers []answer
	asked   []time.Duration
	before  func(question int)
}

func (s *source) Operation(_ context.Context, id string) (operatorapi.Operation, time.Duration, error) {
	if s.before != nil {
		s.before(len(s.asked))
	}

	next := s.answers[min(len(s.asked), len(s.answers)-1)]
	s.asked = append(s.asked, s.clock.Now().Sub(s.start))

	return operatorapi.Operation{ID: id, State: next.state}, next.rest, next.err
}

type shown struct {
	After     time.Duration
	State     operatorapi.OperationState
	PollError string
}

type recorder struct {
	start time.Time
	shown []shown
}

func (r *recorder) Show(moment follow.Moment) {
	line := shown{After: moment.Now.Sub(r.start), State: moment.Operation.State}
	if moment.PollError != nil {
		line.PollError = moment.PollError.Error()
	}

	r.shown = append(r.shown, line)
}

type passingError struct{}

func (passingError) Error() string   { return "the broker starts" }
func (passingError) Temporary() bool { return true }

var errLasting = errors.New("no such operation")

func TestFollow(t *testing.T) {
	t.Parallel()

	const second = time.Second

	cases := map[string]struct {
		reason  string
		answers []answer
		limit   time.Duration
		asked   []time.Duration
		shown   []shown
		err     string
	}{
		"Success": {
			reason:  "the operation is polled every second until it has ended",
			answers: []answer{{state: "pending"}, {state: "in progress"}, {state: "succeeded"}},
			asked:   []time.Duration{0, second, 2 * second},
			shown:   []shown{{0, "pending", ""}, {second, "in progress", ""}, {2 * second, "succeeded", ""}},
		},
		"Failure": {
			reason:  "a failed operation is an error",
			answers: []answer{{state: "failed"}},
			asked:   []time.Duration{0},
			shown:   []shown{{0, "failed", ""}},
			err:     "operation op failed",
		},
		"Canceled": {
			reason:  "a canceled operation is an error, too",
			answers: []answer{{state: "canceling"}, {state: "canceled"}},
			asked:   []time.Duration{0, second},
			shown:   []shown{{0, "canceling", ""}, {second, "canceled", ""}},
			err:     "operation op canceled",
		},
		"PollError": {
			reason:  "during an outage of the broker, polling continues and the view shows the error",
			answers: []answer{{err: passingError{}}, {state: "in progress"}, {err: passingError{}}, {state: "succeeded"}},
			asked:   []time.Duration{0, second, 2 * second, 3 * second},
			shown: []shown{
				{0, "", "the broker starts"},
				{second, "in progress", ""},
				{2 * second, "in progress", "the broker starts"},
				{3 * second, "succeeded", ""},
			},
		},
		"Rest": {
			reason:  "polling respects Retry-After, and the view is updated in between",
			answers: []answer{{err: passingError{}, rest: 3 * second}, {state: "succeeded"}},
			asked:   []time.Duration{0, 3 * second},
			shown: []shown{
				{0, "", "the broker starts"},
				{second, "", "the broker starts"},
				{2 * second, "", "the broker starts"},
				{3 * second, "succeeded", ""},
			},
		},
		"Timeout": {
			reason:  "the wait ends exactly at its limit and not at the next poll",
			answers: []answer{{state: "in progress"}},
			limit:   1500 * time.Millisecond,
			asked:   []time.Duration{0, second},
			shown:   []shown{{0, "in progress", ""}, {second, "in progress", ""}, {1500 * time.Millisecond, "in progress", ""}},
			err:     "timed out waiting for operation op after 1.5s; the operation continues",
		},
		"LastingError": {
			reason:  "a permanent error ends the wait",
			answers: []answer{{state: "in progress"}, {err: errLasting}},
			asked:   []time.Duration{0, second},
			shown:   []shown{{0, "in progress", ""}},
			err:     "reading operation op: no such operation",
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			start := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
			clock := &fakeClock{now: start}
			source := &source{clock: clock, start: start, answers: tc.answers}
			view := &recorder{start: start}

			_, err := follow.Follower{Source: source, Noun: "instance", Clock: clock, View: view, Interval: second, Limit: tc.limit}.
				Follow(t.Context(), "op")

			if diff := cmp.Diff(tc.asked, source.asked); diff != "" {
				t.Errorf("%s: polls, -want +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.shown, view.shown); diff != "" {
				t.Errorf("%s: view, -want +got:\n%s", tc.reason, diff)
			}

			if got := text(err); got != tc.err {
				t.Errorf("%s: got error %q, want %q", tc.reason, got, tc.err)
			}
		})
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	clock := &fakeClock{}
	source := &source{clock: clock, answers: []answer{{state: "in progress"}, {err: context.Canceled}}}
	source.before = func(question int) {
		if question == 1 {
			cancel()
		}
	}

	_, err := follow.Follower{Source: source, Noun: "instance", Clock: clock, View: &recorder{}, Interval: time.Second}.Follow(ctx, "op")

	want := "stopped waiting for operation op, which continues: context canceled"
	if !errors.Is(err, context.Canceled) || err.Error() != want {
		t.Errorf("canceled wait: got %v, want %s", err, want)
	}
}

func TestEndedErrorNamesTheStep(t *testing.T) {
	t.Parallel()

	err := &follow.EndedError{Operation: operatorapi.Operation{
		ID: "op", State: "failed", Stage: "create_runtime", Step: "Create_Runtime",
		Problem: operatorapi.Problem{Message: "quota exceeded"},
	}}

	want := "operation op failed at step Create_Runtime of stage create_runtime: quota exceeded"
	if err.Error() != want {
		t.Errorf("got %q, want %q", err.Error(), want)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}

	return err.Error()
}
