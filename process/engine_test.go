package process_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

func TestStagesRunInOrderAndAreRecorded(t *testing.T) {
	inBubble(t, func(b *fixture) {
		b.start(b.engine(b.store, stage("first", succeeding("A"), succeeding("B")), stage("second", succeeding("C"))))
		b.accept("op", "instance")

		record := b.await("op")
		if record.State != process.Succeeded {
			b.Fatalf("ended as %s: %+v", record.State, record.Problem)
		}

		if diff := cmp.Diff([]string{"A", "B", "C"}, b.trace(record)); diff != "" {
			b.Errorf("steps -want +got:\n%s", diff)
		}

		if diff := cmp.Diff([]string{"first", "second"}, record.FinishedStages); diff != "" {
			b.Errorf("finished stages -want +got:\n%s", diff)
		}

		want := []string{"accepted", "A done", "B done", "C done", "operation succeeded"}
		if diff := cmp.Diff(want, b.history("op")); diff != "" {
			b.Errorf("timeline -want +got:\n%s", diff)
		}
	})
}

func TestStageRestartsWhenAStepRunsAgain(t *testing.T) {
	inBubble(t, func(b *fixture) {
		finished, again := succeeding("Finished"), succeeding("Again")
		waiting := scripted("Waiting", func(run int) (time.Duration, error) {
			if run < 3 {
				return 30 * time.Second, nil
			}

			return 0, nil
		})

		b.start(b.engine(b.store, stage("first", finished), stage("second", again, waiting)))
		b.accept("op", "instance")

		began := time.Now()
		record := b.await("op")

		if finished.runs() != 1 || again.runs() != 3 || waiting.runs() != 3 {
			b.Errorf("runs: finished stage %d (want 1), step before %d (want 3), waiting step %d (want 3)",
				finished.runs(), again.runs(), waiting.runs())
		}

		if took := time.Since(began); took < time.Minute || took > 64*time.Second {
			b.Errorf("took %s, want two waits of 30s", took)
		}

		if record.State != process.Succeeded {
			b.Errorf("ended as %s", record.State)
		}
	})
}

func TestRetryPolicyAppliesToRetryableErrors(t *testing.T) {
	inBubble(t, func(b *fixture) {
		flaky := scripted("Flaky", func(run int) (time.Duration, error) {
			if run < 4 {
				return 0, failure.New(failure.Transient, "the database is unavailable")
			}

			return 0, nil
		})

		b.start(b.engine(b.store, stage("only", flaky)))
		b.accept("op", "instance")

		if record := b.await("op"); record.State != process.Succeeded || record.Problem != (process.Problem{}) {
			b.Errorf("ended as %s with problem %+v", record.State, record.Problem)
		}

		want := []string{"accepted", "Flaky retrying 1-3", "Flaky done", "operation succeeded"}
		if diff := cmp.Diff(want, b.history("op")); diff != "" {
			b.Errorf("timeline -want +got:\n%s", diff)
		}

		entry := b.timeline("op")[1]
		if entry.Attempt != 3 || entry.Message != "the database is unavailable" || entry.NextRun.Sub(entry.End) != 4*time.Second {
			b.Errorf("third attempt: %+v, want message and the third interval, 4s", entry)
		}
	})
}

// TestErrorEndsTheOperation checks for a known defect of similar engines, which treat an error without a duration as a
// success.
func TestErrorEndsTheOperation(t *testing.T) {
	cases := map[string]struct {
		reason      string
		err         error
		wait        time.Duration
		wantMessage string
		wantReason  string
		wantRuns    int
	}{
		"permanent": {
			reason:      "a permanent error fails the operation and is shown to the user",
			err:         failure.New(failure.Quota, "no more addresses").WithReason("ERR_INFRA_QUOTA_EXCEEDED", "gardener"),
			wantMessage: "no more addresses",
			wantReason:  "ERR_INFRA_QUOTA_EXCEEDED",
			wantRuns:    1,
		},
		"unknown": {
			reason:      "an error without a kind is internal, and only the log has its text",
			err:         errors.New("secret of the driver"),
			wantMessage: "internal error",
			wantReason:  failure.ReasonInternal,
			wantRuns:    1,
		},
		"a duration with an error": {
			reason:      "a violation of the contract fails the operation",
			err:         failure.New(failure.Transient, "unavailable"),
			wait:        time.Second,
			wantMessage: "internal error",
			wantRuns:    1,
		},
		"window passed": {
			reason:      "a retryable error after the stage's window fails the operation with the text of the error",
			err:         failure.New(failure.Transient, "the Provisioner is unavailable").WithReason("err_http", "provisioner"),
			wantMessage: "the Provisioner is unavailable: gave up after 1m0s",
			wantReason:  "err_http",
			wantRuns:    -1,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *fixture) {
				broken, never := scripted("Broken", func(int) (time.Duration, error) { return c.wait, c.err }), succeeding("Never")

				b.start(b.engine(b.store, stage("only", broken, never)))
				b.accept("op", "instance")

				record := b.await("op")
				if record.State != process.Failed || record.Problem.Message != c.wantMessage || record.Problem.Reason != c.wantReason {
					b.Errorf("%s: ended as %s, %+v", c.reason, record.State, record.Problem)
				}

				if never.runs() != 0 || (c.wantRuns >= 0 && broken.runs() != c.wantRuns) {
					b.Errorf("%s: ran %d times, the step after it %d times", c.reason, broken.runs(), never.runs())
				}
			})
		})
	}
}

func TestPanicFailsOnlyItsOperation(t *testing.T) {
	unlucky := func(o operation) {
		if o.InstanceID == "unlucky" {
			panic("an injected panic")
		}
	}

	conditional := stage("only")
	conditional.Steps = []process.Task[data]{{Step: succeeding("A"), When: process.Condition[data]{Text: "a condition", Holds: func(o operation) bool {
		unlucky(o)

		return true
	}}}}

	stages := map[string]process.Stage[data]{
		"condition of the step": conditional,
		"step": stage("only", &step{name: "Panic", work: func(_ context.Context, o operation) (operation, time.Duration, error) {
			unlucky(o)

			return o, 0, nil
		}}),
	}

	for name, panics := range stages {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *fixture) {
				logger, logged := logtest.NewNullLogger()
				b.log = logger

				b.start(b.engine(b.store, panics))
				b.accept("bad", "unlucky")
				b.accept("good", "lucky")

				if record := b.await("bad"); record.State != process.Failed || record.Problem.Message != "internal error" {
					b.Errorf("ended as %s, %+v", record.State, record.Problem)
				}

				if record := b.await("good"); record.State != process.Succeeded {
					b.Errorf("the other operation ended as %s", record.State)
				}

				want := name + " panicked: an injected panic"
				if !slices.ContainsFunc(logged.AllEntries(), func(entry *logrus.Entry) bool { return entry.Message == want }) {
					b.Errorf("the log lacks %q", want)
				}
			})
		})
	}
}

func TestStepThatReturnsAnotherOperationFails(t *testing.T) {
	inBubble(t, func(b *fixture) {
		b.start(b.engine(b.store, stage("only", &step{name: "Empty", work: func(context.Context, operation) (operation, time.Duration, error) {
			return operation{}, 0, nil
		}})))
		b.accept("op", "instance")

		if record := b.await("op"); record.State != process.Failed {
			b.Errorf("ended as %s", record.State)
		}
	})
}

func TestStepsCannotChangeTheRecord(t *testing.T) {
	inBubble(t, func(b *fixture) {
		next := succeeding("Next")
		meddling := &step{name: "Meddling", work: func(_ context.Context, o operation) (operation, time.Duration, error) {
			o.FinishedStages, o.SkippedSteps = []string{"next"}, []string{"Next"}
			o.State, o.StartedAt, o.Lease = process.Succeeded, time.Time{}, process.Lease{}

			return o, 0, nil
		}}

		b.start(b.engine(b.store, stage("only", meddling), stage("next", next)))
		b.accept("op", "instance")

		record := b.await("op")
		if record.State != process.Succeeded || next.runs() != 1 || len(record.SkippedSteps) > 0 || record.StartedAt.IsZero() {
			b.Errorf("the next stage ran %d times: %+v", next.runs(), record)
		}
	})
}

func TestRetryOperationWindows(t *testing.T) {
	cases := map[string]struct {
		reason    string
		retry     func(operation) (operation, time.Duration, error)
		wantState process.State
		wantSkip  []string
		wantLast  string
	}{
		"fails": {
			reason: "after the window the operation fails with the reason and the error",
			retry: func(o operation) (operation, time.Duration, error) {
				return process.RetryOperation(o, "registering", failure.New(failure.Transient, "503"), 10*time.Second, time.Minute)
			},
			wantState: process.Failed,
			wantLast:  "operation failed",
		},
		"continues": {
			reason: "after the window the step is recorded as not completed and the operation continues",
			retry: func(o operation) (operation, time.Duration, error) {
				return process.RetryOperationWithoutFail(o, "registering", failure.New(failure.Transient, "503"), 10*time.Second, time.Minute)
			},
			wantState: process.Succeeded,
			wantSkip:  []string{"Register"},
			wantLast:  "operation succeeded",
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *fixture) {
				register := &step{name: "Register", work: func(_ context.Context, o operation) (operation, time.Duration, error) {
					return c.retry(o)
				}}

				b.start(b.engine(b.store, stage("only", register)))
				b.accept("op", "instance")

				began := time.Now()
				record := b.await("op")

				if record.State != c.wantState || !cmp.Equal(record.SkippedSteps, append([]string{}, c.wantSkip...)) {
					b.Errorf("%s: ended as %s, skipped %v", c.reason, record.State, record.SkippedSteps)
				}

				if took := time.Since(began); took < time.Minute || took > 80*time.Second {
					b.Errorf("%s: took %s, want the window of a minute", c.reason, took)
				}

				if timeline := b.history("op"); timeline[len(timeline)-1] != c.wantLast {
					b.Errorf("%s: the timeline ends with %q", c.reason, timeline[len(timeline)-1])
				}
			})
		})
	}
}

// TestEndOfFiveMinuteWindow checks the last attempt of steps with the window of deletions: it starts exactly five minutes after the first
// one. If it succeeds, the step is completed.
func TestEndOfFiveMinuteWindow(t *testing.T) {
	const window, interval = 5 * time.Minute, 10 * time.Second

	cases := map[string]struct {
		reason   string
		succeeds int // the number of the attempt that succeeds, or 0
		wantRuns int
		wantSkip []string
	}{
		"never": {"the attempt at the end of the window is the last one", 0, 31, []string{"Deregister"}},
		"last":  {"an attempt at the end of the window counts", 31, 31, []string{}},
		"early": {"an earlier success ends the step", 2, 2, []string{}},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *fixture) {
				var first, last time.Time

				deregister := &step{name: "Deregister"}
				deregister.work = func(_ context.Context, o operation) (operation, time.Duration, error) {
					if last = o.Now(); first.IsZero() {
						first = last
					}

					if deregister.runs() == c.succeeds {
						return o, 0, nil
					}

					return process.RetryOperationWithoutFail(o, "deregistering", failure.New(failure.Transient, "503"), interval, window)
				}

				b.start(b.engine(b.store, stage("deregister", deregister), stage("remove", succeeding("Remove"))))
				b.accept("op", "instance")

				record := b.await("op")
				if diff := cmp.Diff(c.wantSkip, record.SkippedSteps); diff != "" || record.State != process.Succeeded || deregister.runs() != c.wantRuns {
					b.Errorf("%s: ended as %s after %d runs, skipped -want +got:\n%s", c.reason, record.State, deregister.runs(), diff)
				}

				want := time.Duration(c.wantRuns-1) * interval
				if took := last.Sub(first); took < want || took > want+time.Duration(c.wantRuns)*time.Second {
					b.Errorf("%s: the last attempt started after %s, want %s", c.reason, took, want)
				}
			})
		})
	}
}

// TestRetryWindowStartsWithTheFirstAttempt checks for a known defect of similar engines, in which a long wait of one step uses
// up the retry window of the next step.
func TestRetryWindowStartsWithTheFirstAttempt(t *testing.T) {
	inBubble(t, func(b *fixture) {
		poll := scripted("Poll", func(run int) (time.Duration, error) {
			if run < 8 {
				return time.Minute, nil
			}

			return 0, nil
		})
		hiccup := scripted("Hiccup", func(run int) (time.Duration, error) {
			if run < 3 {
				return 0, failure.New(failure.Transient, "unavailable")
			}

			return 0, nil
		})

		b.start(b.engine(b.store, stage("poll", poll), stage("next", hiccup)))
		b.accept("op", "instance")

		if record := b.await("op"); record.State != process.Succeeded {
			b.Errorf("ended as %s, %+v", record.State, record.Problem)
		}
	})
}

// TestLongOutageHasAShortTimeline checks that the steps before a failing step do not add entries whenever the stage restarts.
func TestLongOutageHasAShortTimeline(t *testing.T) {
	const outage = 20

	inBubble(t, func(b *fixture) {
		order := scripted("Order", func(run int) (time.Duration, error) {
			switch {
			case run > outage:
				return 0, nil
			case run == 1:
				return 0, failure.New(failure.Transient, "the call timed out")
			default:
				return 0, failure.New(failure.Transient, "the circuit breaker is open")
			}
		})
		patient := stage("create", succeeding("Choose"), succeeding("Name"), order, succeeding("Note"))
		patient.Retry.Window = time.Hour

		b.start(b.engine(b.store, stage("start", succeeding("Prepare")), patient))
		b.accept("op", "instance")
		b.await("op")

		want := []string{
			"accepted", "Prepare done", "Choose done", "Name done", "Order retrying", "Order retrying 2-20", "Order done", "Note done",
			"operation succeeded",
		}
		if diff := cmp.Diff(want, b.history("op")); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}
	})
}

func TestOperationLimitCountsFromTheFirstClaim(t *testing.T) {
	for pause, reason := range map[time.Duration]string{
		time.Minute: "a step that waits repeatedly", 10 * limit: "a step whose next run is far beyond the limit",
	} {
		inBubble(t, func(b *fixture) {
			b.start(b.engine(b.store, stage("only", scripted("Forever", func(int) (time.Duration, error) { return pause, nil }))))
			b.accept("op", "instance")

			record := b.await("op")
			if record.State != process.Failed || record.Problem.Reason != failure.ReasonTimeout {
				b.Errorf("%s: ended as %s, %+v", reason, record.State, record.Problem)
			}

			if took := record.FinishedAt.Sub(record.StartedAt); took < limit || took > limit+2*time.Minute {
				b.Errorf("%s: took %s, want the limit of %s", reason, took, limit)
			}
		})
	}
}

func TestProblemNamesItsComponent(t *testing.T) {
	for name, c := range map[string]struct {
		reason    string
		work      work
		component string
	}{
		"waited": {"the service waits for too long", func(_ context.Context, o operation) (operation, time.Duration, error) {
			return process.Await(o, "a decision is pending", time.Second, time.Minute)
		}, service},
		"overdue": {"the service ends an operation that never ends", func(_ context.Context, o operation) (operation, time.Duration, error) {
			return o, time.Minute, nil
		}, service},
		"unexplained": {"an error without a kind is an error of the service itself", func(_ context.Context, o operation) (operation, time.Duration, error) {
			return o, 0, errors.New("hush")
		}, service},
		"elsewhere": {"the component of another system is kept", func(_ context.Context, o operation) (operation, time.Duration, error) {
			return o, 0, failure.New(failure.Permanent, "no").WithReason("", "elsewhere")
		}, "elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *fixture) {
				b.start(b.engine(b.store, stage("only", &step{name: "Decide", work: c.work})))
				b.accept("op", "instance")

				if record := b.await("op"); record.State != process.Failed || record.Problem.Component != c.component {
					b.Errorf("%s: ended as %s, %+v", c.reason, record.State, record.Problem)
				}
			})
		})
	}
}

func TestConditionSkipsAStep(t *testing.T) {
	inBubble(t, func(b *fixture) {
		skipped, off, run := succeeding("Skipped"), succeeding("Off"), succeeding("Run")
		conditional := stage("only", run)
		conditional.Steps = append(conditional.Steps, process.Task[data]{
			Step: skipped, When: process.Condition[data]{Text: "of another instance", Holds: func(o operation) bool { return o.InstanceID == "other" }},
		}, process.Task[data]{
			Step: off, When: process.Condition[data]{Text: "configured", Off: true, Holds: func(operation) bool { return true }},
		})

		b.start(b.engine(b.store, conditional))
		b.accept("op", "instance")
		b.await("op")

		if skipped.runs() != 0 || off.runs() != 0 || run.runs() != 1 {
			b.Errorf("the skipped steps ran %d and %d times, the other %d", skipped.runs(), off.runs(), run.runs())
		}
	})
}

func TestNonPositiveIntervalFails(t *testing.T) {
	broken := failure.New(failure.Transient, "the upstream is broken")

	for name, work := range map[string]work{
		"Await": func(_ context.Context, o operation) (operation, time.Duration, error) {
			return process.Await(o, "a decision is pending", 0, time.Minute)
		},
		"RetryOperation": func(_ context.Context, o operation) (operation, time.Duration, error) {
			return process.RetryOperation(o, "broken", broken, 0, time.Minute)
		},
		"RetryOperationWithoutFail": func(_ context.Context, o operation) (operation, time.Duration, error) {
			return process.RetryOperationWithoutFail(o, "broken", broken, -time.Second, time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *fixture) {
				b.start(b.engine(b.store, stage("only", &step{name: "Decide", work: work})))
				b.accept("op", "instance")

				if record := b.await("op"); record.State != process.Failed || record.Problem.Reason != failure.ReasonInternal {
					b.Errorf("ended as %s, %+v", record.State, record.Problem)
				}
			})
		})
	}
}
