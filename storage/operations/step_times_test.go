package operations_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// TestStepTimes reads the times of steps with several attempts, and of an operation without a timeline.
func TestStepTimes(t *testing.T) {
	each(t, func(b fixture) {
		b.accept("op", "instance")
		b.attempts("op",
			process.Entry{Step: "A", Attempt: 1, Outcome: process.Waiting, Message: "m"},
			process.Entry{Step: "A", Attempt: 2, Outcome: process.Waiting, Message: "m"},
			process.Entry{Step: "A", Attempt: 3, Outcome: process.Done},
			process.Entry{Step: "B", Attempt: 1, Outcome: process.Done},
		)

		b.accept("new", "other")

		got, err := b.store.StepTimes(b.Context(), []string{"op", "new", "missing"})
		if err != nil {
			b.Fatal(err)
		}

		want := []operations.StepTime{
			{OperationID: "op", Step: "A", BeganAt: storage.At(start), EndedAt: storage.At(start.Add(2*time.Minute + time.Second))},
			{OperationID: "op", Step: "B", BeganAt: storage.At(start.Add(3 * time.Minute)), EndedAt: storage.At(start.Add(3*time.Minute + time.Second))},
		}
		byStep := cmpopts.SortSlices(func(one, other operations.StepTime) bool { return one.Step < other.Step })

		if diff := cmp.Diff(want, got, byStep); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}

		if got, err := b.store.StepTimes(b.Context(), nil); len(got) > 0 || err != nil {
			b.Errorf("no operations: got %v, %v", got, err)
		}
	})
}

// TestStepSince checks that a record contains the time of the first attempt of its step, both while an attempt runs and between
// attempts. Lists show the same time.
func TestStepSince(t *testing.T) {
	each(t, func(b fixture) {
		b.accept("op", "instance")

		since := func(want time.Time) {
			b.Helper()

			record, err := b.store.Get(b.Context(), b.store.Reader(), "op")
			if err != nil || !record.StepSince.Equal(want) {
				b.Errorf("StepSince is %s, %v, want %s", record.StepSince, err, want)
			}

			listed, err := b.store.List(b.Context(), operations.Filter{Limit: 1})
			if err != nil || len(listed) != 1 || !listed[0].StepSince.Equal(want) {
				b.Errorf("the list has %+v, %v, want StepSince %s", listed, err, want)
			}
		}

		since(time.Time{})

		record := b.claimOne("replica", "op", start)
		record.Stage, record.Step, record.StepBegan, record.NextRun = "stage", "A", time.Time{}, start.Add(time.Minute)
		attempt := process.Attempt{Stage: "stage", Step: "A", Number: 1, First: start, Last: start}
		b.save(process.Progress{Record: record, Failed: []process.Attempt{attempt}, Release: true, Now: start})
		since(start)

		record = b.claimOne("replica", "op", start.Add(time.Minute))
		record.StepBegan = start.Add(time.Minute)
		b.save(process.Progress{Record: record, Now: start.Add(time.Minute)})
		since(start)

		record.Step, record.StepBegan = "B", start.Add(2*time.Minute)
		b.save(process.Progress{Record: record, Now: start.Add(2 * time.Minute)})
		since(start.Add(2 * time.Minute))
	})
}
