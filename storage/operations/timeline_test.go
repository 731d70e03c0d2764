package operations_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// attempts saves the entries one minute apart, each under a separate claim, and returns the timeline.
func (b fixture) attempts(id string, entries ...process.Entry) []process.Entry {
	b.Helper()

	at := start

	for i := range entries {
		record := b.claimOne("replica-a", id, at)
		entries[i].Stage, entries[i].Began, entries[i].End = "stage", at, at.Add(time.Second)

		if entries[i].Outcome != process.Done {
			entries[i].NextRun = at.Add(time.Minute)
		}

		record.NextRun = at.Add(time.Minute)
		b.save(process.Progress{Record: record, Timeline: entries[i : i+1], Release: true, Now: entries[i].End})

		at = at.Add(time.Minute)
	}

	timeline, err := b.store.Timeline(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}

	return timeline[1:] // without the entry of the acceptance
}

func TestEqualAttemptsShareAnEntry(t *testing.T) {
	entry := func(step string, attempt int, outcome process.Outcome, message string) process.Entry {
		return process.Entry{Step: step, Attempt: attempt, Outcome: outcome, Message: message}
	}
	line := func(first process.Entry, from int, minutes ...int) process.Entry {
		first.Stage, first.FirstAttempt = "stage", from
		first.Began = start.Add(time.Duration(minutes[0]) * time.Minute)
		last := start.Add(time.Duration(minutes[len(minutes)-1]) * time.Minute)
		first.End = last.Add(time.Second)

		if first.Outcome != process.Done {
			first.NextRun = last.Add(time.Minute)
		}

		return first
	}

	cases := map[string]struct {
		reason  string
		entries []process.Entry
		want    []process.Entry
	}{
		"polls": {
			"a long wait takes one line without a gap in its numbers",
			[]process.Entry{
				entry("A", 1, process.Waiting, "m"), entry("A", 2, process.Waiting, "m"), entry("A", 3, process.Waiting, "m"), entry("A", 4, process.Done, ""),
			},
			[]process.Entry{line(entry("A", 3, process.Waiting, "m"), 1, 0, 2), line(entry("A", 4, process.Done, ""), 0, 3)},
		},
		"retries": {
			"equal errors share a line",
			[]process.Entry{entry("A", 1, process.Retrying, "m"), entry("A", 2, process.Retrying, "m")},
			[]process.Entry{line(entry("A", 2, process.Retrying, "m"), 1, 0, 1)},
		},
		"news": {
			"a different message starts a line",
			[]process.Entry{entry("A", 1, process.Waiting, "m"), entry("A", 2, process.Waiting, "n"), entry("A", 3, process.Waiting, "n"), entry("A", 4, process.Waiting, "m")},
			[]process.Entry{
				line(entry("A", 1, process.Waiting, "m"), 0, 0), line(entry("A", 3, process.Waiting, "n"), 2, 1, 2), line(entry("A", 4, process.Waiting, "m"), 0, 3),
			},
		},
		"outcome": {
			"errors and waits have separate lines",
			[]process.Entry{entry("A", 1, process.Waiting, "m"), entry("A", 2, process.Retrying, "m")},
			[]process.Entry{line(entry("A", 1, process.Waiting, "m"), 0, 0), line(entry("A", 2, process.Retrying, "m"), 0, 1)},
		},
		"other step": {
			"a different step starts a line",
			[]process.Entry{entry("A", 1, process.Waiting, "m"), entry("B", 2, process.Waiting, "m")},
			[]process.Entry{line(entry("A", 1, process.Waiting, "m"), 0, 0), line(entry("B", 2, process.Waiting, "m"), 0, 1)},
		},
		"starts over": {
			"attempts after a success start a line",
			[]process.Entry{entry("A", 1, process.Waiting, "m"), entry("A", 1, process.Waiting, "m")},
			[]process.Entry{line(entry("A", 1, process.Waiting, "m"), 0, 0), line(entry("A", 1, process.Waiting, "m"), 0, 1)},
		},
		"done twice": {
			"each success has a line",
			[]process.Entry{entry("A", 1, process.Done, ""), entry("A", 2, process.Done, "")},
			[]process.Entry{line(entry("A", 1, process.Done, ""), 0, 0), line(entry("A", 2, process.Done, ""), 0, 1)},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			each(t, func(b fixture) {
				b.accept("op", "instance")

				got := b.attempts("op", slices.Clone(c.entries)...)
				if diff := cmp.Diff(c.want, got, cmpopts.EquateApproxTime(time.Microsecond)); diff != "" {
					b.Errorf("%s: -want +got\n%s", c.reason, diff)
				}
			})
		})
	}
}

// ended accepts an operation and ends it at the given time.
func (b fixture) ended(id string, at time.Time) {
	b.Helper()
	b.accept(id, "instance of "+id)

	progress := finished(b.claimOne("replica-a", id, start), process.Failed)
	progress.Record.FinishedAt, progress.Now = at, at
	progress.Failed = []process.Attempt{{Stage: "stage", Step: "A", Number: 2, First: at, Last: at}}
	progress.Timeline = []process.Entry{{Began: at, End: at, Outcome: process.OperationFailed}}
	b.save(progress)
}

func TestOldTimelinesAreRemoved(t *testing.T) {
	const keep = 24 * time.Hour

	each(t, func(b fixture) {
		clock := clocktesting.NewFakeClock(start.Add(48 * time.Hour))
		sweep := func(keep time.Duration) {
			logger, _ := logtest.NewNullLogger()
			retention := b.store.Retention(keep, clock, logger)

			if err := retention.Sweep(b.Context()); err != nil {
				b.Fatal(err)
			}
		}

		b.ended("old", clock.Now().Add(-keep-time.Second))
		b.ended("young", clock.Now().Add(-keep+time.Second))
		b.accept("waiting", "instance of waiting")

		sweep(0)

		if lines := len(b.outcomes("old")); lines != 2 {
			b.Errorf("without a retention period %d entries remain, want all", lines)
		}

		sweep(keep)

		left := map[string]int{"old": len(b.outcomes("old")), "young": len(b.outcomes("young")), "waiting": len(b.outcomes("waiting"))}
		if diff := cmp.Diff(map[string]int{"old": 0, "young": 2, "waiting": 1}, left); diff != "" {
			b.Errorf("lines: -want +got\n%s", diff)
		}

		if record := b.get("old"); record.State != process.Failed || !record.TimelineRemoved.Equal(storage.At(clock.Now()).Time) {
			b.Errorf("the operation is gone, or does not record the removal of its timeline: %+v", record)
		}

		if record := b.get("young"); !record.TimelineRemoved.IsZero() {
			b.Errorf("its timeline is reported as removed: %+v", record)
		}

		attempts, err := storage.Select[string](b.Context(), b.db.Reader(), `SELECT operation_id FROM step_attempts`)
		if diff := cmp.Diff([]string{"young"}, attempts); diff != "" || err != nil {
			b.Errorf("attempts: %v, -want +got\n%s", err, diff)
		}

		removed := b.get("old").TimelineRemoved
		clock.Step(time.Hour)
		sweep(keep)

		if again := b.get("old").TimelineRemoved; !again.Equal(removed) {
			b.Errorf("the timeline was removed again: first at %s, then at %s", removed, again)
		}
	})
}

func TestManyOldTimelinesAreRemovedInBatches(t *testing.T) {
	each(t, func(b fixture) {
		const many, batch = 5, 2

		for id := range many {
			b.ended(string(rune('a'+id)), start)
		}

		var batches []int

		for {
			removed, err := b.store.RemoveTimelines(b.Context(), start.Add(time.Hour), start.Add(time.Hour), batch)
			if err != nil {
				b.Fatal(err)
			}

			if batches = append(batches, removed); removed < batch {
				break
			}
		}

		if diff := cmp.Diff([]int{2, 2, 1}, batches); diff != "" {
			b.Errorf("batches: -want +got\n%s", diff)
		}
	})
}

func TestSaveWaitsForAnOperator(t *testing.T) {
	each(t, func(b fixture) {
		b.accept("op", "instance")
		record := b.claimOne("replica-a", "op", start)
		saved := make(chan error, 1)

		err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
			if _, err := b.store.CancelOne(b.Context(), tx, "op", "enough", start); err != nil {
				return err
			}

			go func() {
				_, err := b.store.Save(context.WithoutCancel(b.Context()), process.Progress{
					Record: record, Now: start, Timeline: []process.Entry{{Step: "A", Attempt: 1, Began: start, End: start, Outcome: process.Done}},
				})
				saved <- err
			}()

			return b.awaitWaitingTransaction()
		})
		if err := errors.Join(err, <-saved); err != nil {
			b.Fatal(err)
		}

		want := []process.Outcome{process.Accepted, process.CancelRequested, process.Done}
		if diff := cmp.Diff(want, b.outcomes("op")); diff != "" {
			b.Errorf("both transactions must have added their entries, -want +got:\n%s", diff)
		}
	})
}

// awaitWaitingTransaction waits until a transaction in the database waits for a lock, which the caller's transaction holds. On
// SQLite, which has only one writer, it returns immediately.
func (b fixture) awaitWaitingTransaction() error {
	for b.db.Driver() == storage.DriverPostgres {
		waiting, err := storage.Select[int](b.Context(), b.db.Reader(), `SELECT 1 FROM pg_locks WHERE NOT granted AND pid IN (
			SELECT pid FROM pg_stat_activity WHERE datname = current_database())`)
		if err != nil || len(waiting) > 0 {
			return err
		}
	}

	return nil
}
