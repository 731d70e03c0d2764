package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// results counts the rows that effects have inserted into a table outside the engine.
func (b *fixture) results() int {
	b.Helper()

	count, err := storage.Get[int](b.Context(), b.db.Reader(), `SELECT count(*) FROM results`)
	if err != nil {
		b.Fatal(err)
	}

	return count
}

// writing returns a step whose effect inserts a row and then returns fault(run), where run counts the runs of the step from 1.
func (b *fixture) writing(name string, fault func(run int) error) *step {
	b.Helper()

	if _, err := storage.Exec(b.Context(), b.db.Writer(), `CREATE TABLE results (operation TEXT)`); err != nil {
		b.Fatal(err)
	}

	s := &step{name: name}
	s.work = func(_ context.Context, o operation) (operation, time.Duration, error) {
		run := s.runs()

		o.Effect = operations.Effect(func(ctx context.Context, tx storage.Tx) error {
			_, err := storage.Exec(ctx, tx, `INSERT INTO results VALUES (?)`, o.ID)

			return errors.Join(err, fault(run))
		})

		return o, 0, nil
	}

	return s
}

func TestEffect(t *testing.T) {
	transient, permanent := failure.New(failure.Transient, "the database is unreachable"), failure.New(failure.Quota, "taken")

	cases := map[string]struct {
		reason string
		fault  func(run int) error
		// cancel cancels the operation while the step runs.
		cancel  bool
		state   process.State
		results int
		history []string
		// observed are the outcomes that the Observer gets.
		observed []string
	}{
		"made": {
			reason: "the row appears with the end of the operation",
			fault:  func(int) error { return nil },
			state:  process.Succeeded, results: 1,
			history:  []string{"accepted", "A done", "Write done", "operation succeeded"},
			observed: []string{"Write done after 0s"},
		},
		"away": {
			reason: "a retryable error counts as an error of the step and leaves no row",
			fault: func(run int) error {
				if run < 3 {
					return transient
				}

				return nil
			},
			state: process.Succeeded, results: 1,
			history:  []string{"accepted", "A done", "Write retrying 1-2", "Write done", "operation succeeded"},
			observed: []string{"Write retrying after 0s", "Write retrying after 0s", "Write done after 0s"},
		},
		"refused": {
			reason: "another error fails the operation",
			fault:  func(int) error { return permanent },
			state:  process.Failed, results: 0,
			history:  []string{"accepted", "A done", "Write failed", "operation failed"},
			observed: []string{"Write failed after 0s"},
		},
		"canceled": {
			reason: "an operation that ends as canceled has no effect",
			fault:  func(int) error { return nil }, cancel: true,
			state: process.Canceled, results: 0,
			history:  []string{"accepted", "A done", "cancel requested", "Write done", "operation canceled"},
			observed: []string{"Write done after 0s"},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *fixture) {
				observer := &recorder{}
				write := b.writing("Write", c.fault)

				if made := write.work; c.cancel {
					write.work = func(ctx context.Context, o operation) (operation, time.Duration, error) {
						b.cancel("instance")

						return made(ctx, o)
					}
				}

				b.start(b.observed(b.store, observer, stage("first", succeeding("A")), stage("last", write)))
				b.accept("op", "instance")

				record := b.await("op")
				if record.State != c.state || b.results() != c.results {
					b.Errorf("%s: ended as %s with %d rows: %+v", c.reason, record.State, b.results(), record.Problem)
				}

				if finished := record.Finished("last"); finished != (c.state != process.Failed) {
					b.Errorf("finished stages: %v", record.FinishedStages)
				}

				if diff := cmp.Diff(c.history, b.history("op")); diff != "" {
					b.Errorf("timeline -want +got:\n%s", diff)
				}

				attempts := slices.DeleteFunc(observer.recorded(), func(line string) bool { return !strings.HasPrefix(line, "Write") })
				if diff := cmp.Diff(c.observed, attempts); diff != "" {
					b.Errorf("observed -want +got:\n%s", diff)
				}
			})
		})
	}
}

// TestRetryHasTheEffect cancels an operation while its last step runs, so that all stages end although the effect is missing. The
// retry runs the last stage again, and so has the effect.
func TestRetryHasTheEffect(t *testing.T) {
	inBubble(t, func(b *fixture) {
		first, write := succeeding("A"), b.writing("Write", func(int) error { return nil })

		made := write.work
		write.work = func(ctx context.Context, o operation) (operation, time.Duration, error) {
			if o.ID == "op" {
				b.cancel("instance")
			}

			return made(ctx, o)
		}

		engine := b.engine(b.store, stage("first", first), stage("last", write))
		b.start(engine)
		b.accept("op", "instance")

		canceled := b.await("op")
		canceled.Payload = json.RawMessage(`{}`)
		b.acceptNew(engine.Successor(canceled, "again", time.Now()))

		record := b.await("again")
		if record.State != process.Succeeded || b.results() != 1 || first.runs() != 1 {
			b.Errorf("ended as %s, then as %s with %d rows; the first stage ran %d times",
				canceled.State, record.State, b.results(), first.runs())
		}
	})
}

// TestEffectOfAnEarlierStep checks that an operation fails if a step before the last one sets an effect, because a crash after
// the stage would lose it.
func TestEffectOfAnEarlierStep(t *testing.T) {
	inBubble(t, func(b *fixture) {
		write := b.writing("Write", func(int) error { return nil })

		b.start(b.engine(b.store, stage("first", write), stage("last", succeeding("B"))))
		b.accept("op", "instance")

		if record := b.await("op"); record.State != process.Failed || record.Problem.Message != "internal error" || b.results() != 0 {
			b.Errorf("ended as %s with %d rows: %+v", record.State, b.results(), record.Problem)
		}
	})
}

// unsentWrite is a store whose first Save fails and stores nothing.
type unsentWrite struct {
	process.Store

	failed atomic.Bool
}

func (s *unsentWrite) Save(ctx context.Context, progress process.Progress) (process.State, error) {
	if s.failed.CompareAndSwap(false, true) {
		return "", errDisconnected
	}

	return s.Store.Save(ctx, progress)
}

// TestEffectAfterACrash checks that the effect is executed once if the last write is lost: the step runs again and sets it again.
func TestEffectAfterACrash(t *testing.T) {
	inBubble(t, func(b *fixture) {
		write := b.writing("Write", func(int) error { return nil })

		b.start(b.engine(&unsentWrite{Store: b.store}, stage("last", write)))
		b.accept("op", "instance")

		if record := b.await("op"); record.State != process.Succeeded || b.results() != 1 || write.runs() != 2 {
			b.Errorf("ended as %s with %d rows after %d runs", record.State, b.results(), write.runs())
		}
	})
}
