package provisionerwait_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/failure"
)

func TestErrorsOfOperations(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		refused := failure.New(failure.NotFound, "there is no such operation")
		f.answer = func(id string, _ int) error {
			if id == "unknown" {
				return refused
			}

			return nil
		}

		f.expect("tenant", 0, "known", "unknown")
		f.polls("tenant", "first")

		if _, _, err := f.poller.Poll(f.Context(), "tenant", "unknown"); !errors.Is(err, refused) {
			f.Errorf("got %v, want the error of the operation", err)
		}

		f.polls("tenant", "known")
		f.wantRequests("all three share a request", []string{"first", "known", "unknown"})
	})
}

func TestAnErrorOfTheRequestIsThatOfEachOperation(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		away := failure.New(failure.Transient, "the Provisioner is unavailable")
		f.answer = func(string, int) error { return away }

		f.expect("tenant", 0, "b", "c")

		for _, id := range []string{"a", "b", "c"} {
			if _, _, err := f.poller.Poll(f.Context(), "tenant", id); !errors.Is(err, away) {
				f.Errorf("%s: got %v, want the error of the request", id, err)
			}
		}

		f.wantRequests("the operations share the request and its error", []string{"a", "b", "c"})

		f.answer = nil
		time.Sleep(spacing)
		f.polls("tenant", "b")
		f.wantRequests("the next poll asks again", []string{"a", "b", "c"}, []string{"b"})
	})
}

// TestAProvisionerThatRejectsBatches checks that the Poller, after a rejected batch, sends one request per operation within the
// limit, and later tries a batch again.
func TestAProvisionerThatRejectsBatches(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		f.answer = func(_ string, count int) error {
			if count > 1 {
				return fmt.Errorf("rejected: %w", provisionerclient.ErrTooManyOperations)
			}

			return nil
		}

		f.expect("tenant", 0, "b")

		if _, _, err := f.poller.Poll(f.Context(), "tenant", "a"); !errors.Is(err, provisionerclient.ErrTooManyOperations) {
			f.Errorf("got %v", err)
		}

		rejected := []string{"a", "b"}
		time.Sleep(singleFor - time.Second)

		f.expect("tenant", 0, "b")

		began := time.Now()

		f.polls("tenant", "a")
		f.polls("tenant", "b")

		if took := time.Since(began); took != 0 {
			f.Errorf("requests for single operations of a tenant wait for each other: %s", took)
		}

		f.wantRequests("each operation is requested on its own", rejected, []string{"a"}, []string{"b"})

		f.answer = nil
		time.Sleep(time.Second)
		f.expect("tenant", 0, "b")
		f.polls("tenant", "a")
		f.wantRequests("later, a request for both is tried again", rejected, []string{"a"}, []string{"b"}, rejected)
	})
}

func TestForgottenPolls(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		f.expect("tenant", 0, "overdue")
		time.Sleep(forgetAfter)
		f.polls("tenant", "new")
		f.wantRequests("an operation that is long overdue is not asked about", []string{"new"})

		f.expect("tenant", 0, operations(maxPolls)...)
		f.expect("tenant", 0, "last")
		time.Sleep(spacing)
		f.polls("tenant", "new")
		f.wantRequests("too many expectations are dropped", []string{"new"}, []string{"last", "new"})
	})
}
