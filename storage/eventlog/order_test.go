package eventlog_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestLateCommit commits two transactions in the reverse order of their writes. A reader must get both events.
func TestLateCommit(t *testing.T) {
	f := newFixture(t, storagetest.Open(t, storagetest.Postgres(t)))

	f.tx(func(late storage.Tx) error {
		if err := f.operations.Accept(f.Context(), late, operation("late", environment.KindUpdate, "one", "")); err != nil {
			return err
		}

		f.accept(operation("early", environment.KindUpdate, "two", ""))
		f.want("the open transaction does not delay others", eventlog.Filter{}, 0, "1 | operation.accepted | two | early | update | 03:04:05")

		return nil
	})

	f.want("the reader continues after the first event", eventlog.Filter{}, 1, "2 | operation.accepted | one | late | update | 03:04:05")
}

// TestCommits counts the transactions that write. A change with an event must need no additional transaction.
func TestCommits(t *testing.T) {
	f := newFixture(t, storagetest.Open(t, storagetest.Postgres(t)))
	commits := func(work func()) int {
		transactions := func() int {
			count, err := storage.Get[int](f.Context(), f.db.Reader(), `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint`)
			if err != nil {
				f.Fatal(err)
			}

			return count
		}

		before := transactions()
		work()

		return transactions() - before
	}

	if got := commits(func() {
		insertion, err := f.instances.Insertion(instance("one"))
		if err == nil {
			err = f.db.ExecBatch(f.Context(), insertion, f.operations.First(operation("create", environment.KindProvision, "one", "account")))
		}

		if err != nil {
			f.Fatal(err)
		}
	}); got != 1 {
		t.Errorf("the acceptance of an instance needs %d commits", got)
	}

	if got := commits(func() {
		if published, err := f.store.Publish(f.Context(), now); published != 2 || err != nil {
			f.Errorf("published %d, %v", published, err)
		}
	}); got != 1 {
		t.Errorf("the publication of all events needs %d commits", got)
	}

	if got := commits(f.publish); got != 0 {
		t.Errorf("the publication of no event needs %d commits", got)
	}
}

// TestBatches publishes more events at once than one transaction moves.
func TestBatches(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		const count = 530

		f.tx(func(tx storage.Tx) error {
			for number := range count {
				if err := f.operations.Accept(f.Context(), tx, operation(strconv.Itoa(number), environment.KindUpdate, strconv.Itoa(number), "")); err != nil {
					return err
				}
			}

			return nil
		})

		if published, err := f.store.Publish(f.Context(), now); published != count || err != nil {
			f.Fatalf("published %d, %v", published, err)
		}

		for number, event := range f.published(eventlog.Filter{}, 0) {
			if event.Position != int64(number)+1 || event.OperationID != strconv.Itoa(number) {
				f.Fatalf("position %d has operation %s, want %d", event.Position, event.OperationID, number)
			}
		}
	})
}

// TestConcurrentPublishers writes with several transactions at once, while two replicas publish and a reader follows.
func TestConcurrentPublishers(t *testing.T) {
	const (
		writers = 4
		each    = 100 // several batches in total
	)

	eachDatabase(t, func(f fixture) {
		var writing, publishing sync.WaitGroup

		written := make(chan struct{})

		for writer := range writers {
			writing.Go(func() {
				for number := range each {
					f.accept(operation(fmt.Sprintf("%d/%03d", writer, number), environment.KindUpdate, strconv.Itoa(writer), ""))
				}
			})
		}

		for range 2 {
			publishing.Go(func() {
				for done := false; !done; {
					select {
					case <-written:
						done = true
					default:
					}

					f.publish()
				}
			})
		}

		go func() {
			writing.Wait()
			close(written)
		}()

		var (
			seen  = map[string]int{}
			after int64
			total int
		)

		for total < writers*each {
			events, last, err := f.store.Read(f.Context(), eventlog.Filter{}, after, 7)
			if err != nil {
				f.Fatal(err)
			}

			for _, event := range events {
				if after++; event.Position != after {
					f.Fatalf("the reader misses position %d: got %d", after, event.Position)
				}

				if want := fmt.Sprintf("%s/%03d", event.InstanceID, seen[event.InstanceID]); event.OperationID != want {
					f.Fatalf("got %s, want %s, the next one of the instance", event.OperationID, want)
				}

				seen[event.InstanceID]++
				total++
			}

			if after != last {
				f.Fatalf("read up to %d, want %d", last, after)
			}
		}

		publishing.Wait()
	})
}
