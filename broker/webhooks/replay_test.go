package webhooks_test

import (
	"net/http"
	"testing"

	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/storage/webhooks"
)

// TestReplayOfPendingEvents replays events that wait for their next attempt: first one of them, then all. They keep their attempts and
// the order of their subject.
func TestReplayOfPendingEvents(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)
		status := http.StatusInternalServerError
		receiver := f.add("hook", eventlog.Filter{}, func(string, http.Header) int { return status })
		replica := f.replica(f.store, f.client.Send)

		f.accept("one", "first", "second")
		f.accept("two", "other")
		f.deliver(replica)

		status = http.StatusOK

		f.deliver(replica)

		if got := receiver.all(t); len(got) != 2 {
			t.Fatalf("received %v, want one attempt of each instance, because the next ones are not due", got)
		}

		replay := func(which webhooks.Replayed, want int) {
			t.Helper()

			if err := f.db.InTx(t.Context(), func(tx storage.Tx) error {
				replayed, err := f.store.Replay(t.Context(), tx, "hook", which, f.clock.Now())
				if replayed != want {
					t.Errorf("%+v: replayed %d, want %d", which, replayed, want)
				}

				return err
			}); err != nil {
				t.Fatal(err)
			}

			f.deliver(replica)
		}

		replay(webhooks.Replayed{}, 0) // there is no dead letter

		if got := receiver.all(t); len(got) != 2 {
			t.Errorf("a replay of dead letters: received %v", got)
		}

		for _, each := range f.undelivered("hook", false) {
			if each.Event.OperationID == "other" {
				replay(webhooks.Replayed{Position: each.Event.Position}, 1)
			}
		}

		if got := receiver.all(t); len(got) != 3 || got[2] != "other" {
			t.Errorf("a replay of one event: received %v, want it as the last one", got)
		}

		status = http.StatusServiceUnavailable

		replay(webhooks.Replayed{Pending: true}, 2)

		if left := f.undelivered("hook", false); len(left) != 2 || left[0].Attempts != 2 || left[0].FirstAt.IsZero() || !left[0].NextAt.After(f.clock.Now()) {
			t.Errorf("after a failed replay: %+v, want the second attempt, and a pause before the third one", left)
		}

		status = http.StatusOK

		replay(webhooks.Replayed{Pending: true}, 2)

		if got := receiver.all(t); len(got) != 6 || got[4] != "first" || got[5] != "second" || len(f.undelivered("hook", false)) != 0 {
			t.Errorf("a replay of all pending events: received %v, want both events in their order", got)
		}
	})
}
