package orders_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// follower reads the feed and passes each cursor to the next request, as a broker does.
type follower struct {
	*fixture

	cursor string
}

func (f *fixture) follow() *follower {
	f.Helper()

	feed := &follower{fixture: f}
	feed.next(0)

	return feed
}

// next requests the changes after the cursor and advances the cursor. It returns the ID and the state of the operation for each
// change.
func (feed *follower) next(wait time.Duration) []string {
	feed.Helper()

	cursor, changes, err := feed.service.Changes(feed.Context(), feed.cursor, wait)
	if err != nil {
		feed.Fatal(err)
	}

	feed.cursor = cursor

	lines := []string{}
	for _, change := range changes {
		lines = append(lines, change.ID+" "+string(change.State))
	}

	return lines
}

func (feed *follower) expect(reason string, want ...string) {
	feed.Helper()

	want = append([]string{}, want...)
	if diff := cmp.Diff(want, feed.next(0)); diff != "" {
		feed.Errorf("%s: -want +got:\n%s", reason, diff)
	}
}

// acceptMany accepts the given number of operations, all with the same time. Their IDs have the prefix.
func (f *fixture) acceptMany(prefix string, count int, at time.Time) {
	f.Helper()

	err := f.db.InTx(f.Context(), func(tx storage.Tx) error {
		for i := range count {
			id := fmt.Sprintf("%s-%04d", prefix, i)
			if err := f.ops.Accept(f.Context(), tx, process.New{
				ID: id, Kind: "bulk", InstanceID: "runtime of " + id, Payload: json.RawMessage(`{}`), At: at,
			}); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
}

func withFakeTime(t *testing.T, test func(f *fixture)) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) { test(newFixture(t, storagetest.SQLite(t))) })
}

func TestChangesAreSentOnce(t *testing.T) {
	withFakeTime(t, func(f *fixture) {
		f.acceptMany("before", 1, time.Now().Add(-time.Minute))

		feed := f.follow()
		feed.expect("changes before the first request are skipped")

		f.acceptMany("one", 1, time.Now())
		feed.expect("accepting an operation is a change", "one-0000 pending")
		feed.expect("the overlap does not repeat the change")

		time.Sleep(time.Second) // fake time, within the overlap
		f.acceptMany("two", 1, time.Now())
		feed.expect("the overlap does not repeat it together with a new change", "two-0000 pending")

		records := f.claimDue()
		feed.expect("starting operations are changes", "before-0000 in progress", "one-0000 in progress", "two-0000 in progress")

		time.Sleep(time.Hour) // fake time
		feed.expect("an hour without changes")

		f.end(records["one-0000"], process.Succeeded)
		feed.expect("the end of an operation is a change", "one-0000 succeeded")
		feed.expect("the overlap does not repeat the change")
	})
}

// TestNewReasonIsAChange checks that the feed reports a new reason for a delay, so that brokers need not poll the status of the
// operation.
func TestNewReasonIsAChange(t *testing.T) {
	withFakeTime(t, func(f *fixture) {
		feed := f.follow()
		f.acceptMany("one", 1, time.Now())
		record := f.claimDue()["one-0000"]
		feed.expect("the operation starts", "one-0000 in progress")

		steps := []struct {
			reason, message, because, progress string
			after                              time.Duration
			want                               []string
		}{
			{"the operation is delayed", "no quota", "ERR_QUOTA", "", time.Second, []string{"one-0000 in progress"}},
			{"the reason stays the same", "still no quota", "ERR_QUOTA", "", time.Second, []string{}},
			{"the reason changes", "no answer", "ERR_UNAVAILABLE", "", time.Second, []string{"one-0000 in progress"}},
			{"the operation resumes", "", "", "", time.Second, []string{"one-0000 in progress"}},
			{"it waits", "", "", "", time.Second, []string{}},
			{"a problem has no reason", "odd", "", "", time.Second, []string{"one-0000 in progress"}},
			{"the operation reports progress", "", "", "10 %", time.Second, []string{"one-0000 in progress"}},
			{"progress of a young operation is reported every second", "", "", "11 %", time.Second, []string{"one-0000 in progress"}},
			{"progress within a second of the last change", "", "", "12 %", 999 * time.Millisecond, []string{}},
			{"an hour later", "", "", "13 %", time.Hour, []string{"one-0000 in progress"}},
			{"progress of an old operation is reported every minute", "", "", "14 %", 59 * time.Second, []string{}},
			{"a minute after the last change", "", "", "20 %", time.Second, []string{"one-0000 in progress"}},
			{"progress stays the same", "", "", "20 %", time.Hour, []string{}},
		}

		for _, step := range steps {
			time.Sleep(step.after) // fake time

			record.Problem = process.Problem{Message: step.message, Reason: step.because}
			record.Progress = step.progress

			if _, err := f.ops.Save(f.Context(), process.Progress{Record: record, Now: time.Now()}); err != nil {
				f.Fatal(err)
			}

			feed.expect(step.reason, step.want...)
		}
	})
}

func TestChangeHasPublicTerms(t *testing.T) {
	withFakeTime(t, func(f *fixture) {
		cursor, _, err := f.service.Changes(f.Context(), "", time.Minute)
		if err != nil {
			f.Fatal(err)
		}

		operationID, runtimeID := f.provision("tenant", "", "c-first")

		_, changes, err := f.service.Changes(f.Context(), cursor, 0)
		want := []orders.Change{{
			ID: operationID, RuntimeID: runtimeID, Kind: operation.KindProvisionNoInstall, State: process.Pending,
		}}

		if diff := cmp.Diff(want, changes); diff != "" || err != nil {
			f.Errorf("%v, -want +got:\n%s", err, diff)
		}
	})
}

func TestAnyReplicaContinuesFromACursor(t *testing.T) {
	withFakeTime(t, func(f *fixture) {
		feed := f.follow()
		f.acceptMany("one", 1, time.Now())
		feed.expect("sent by the first replica", "one-0000 pending")

		f.acceptMany("two", 1, time.Now())

		other := *f.service
		feed.service = &other
		feed.expect("sent by the second replica", "two-0000 pending")
	})
}

func TestLateCommitIsSent(t *testing.T) {
	withFakeTime(t, func(f *fixture) {
		feed := f.follow()
		time.Sleep(time.Minute) // fake time

		began := time.Now()

		time.Sleep(11 * time.Second) // fake time, in which a write waits for the database
		f.acceptMany("quick", 1, time.Now())
		feed.expect("a short transaction commits first", "quick-0000 pending")

		f.acceptMany("slow", 1, began)
		feed.expect("an older transaction commits later", "slow-0000 pending")
		feed.expect("the overlap repeats neither change")
	})
}

func TestFastClockHidesNoChanges(t *testing.T) {
	withFakeTime(t, func(f *fixture) {
		feed := f.follow()
		f.acceptMany("ahead", 1, time.Now().Add(time.Hour))
		feed.expect("a change from the future is sent immediately", "ahead-0000 pending")

		for _, id := range []string{"one", "two"} {
			time.Sleep(10 * time.Second) // fake time
			f.acceptMany(id, 1, time.Now())
			feed.expect("changes of other replicas are sent, and no change is sent again", id+"-0000 pending")
		}
	})
}

func TestManyChangesArePaged(t *testing.T) {
	withFakeTime(t, func(f *fixture) {
		const many, page = 1203, 500

		feed := f.follow()
		f.acceptMany("one", many, time.Now()) // with one time, so that only the marks separate the pages

		var told []string

		for _, want := range []int{page, page, many - 2*page, 0} {
			lines := feed.next(0)
			if len(lines) != want {
				f.Fatalf("the page has %d changes, want %d", len(lines), want)
			}

			told = append(told, lines...)
		}

		slices.Sort(told)

		if len(slices.Compact(told)) != many {
			f.Errorf("some of %d changes were sent more than once", many)
		}

		time.Sleep(time.Minute) // fake time
		f.acceptMany("two", 1, time.Now())
		feed.expect("the feed continues after the last page", "two-0000 pending")

		if len(feed.cursor) > 1000 {
			f.Errorf("the cursor has %d characters: it contains marks from before the overlap", len(feed.cursor))
		}
	})
}

func TestRequestWaitsForChanges(t *testing.T) {
	cases := map[string]struct {
		reason   string
		wait     time.Duration
		after    time.Duration // from the request until a change
		want     []string
		wantTook time.Duration
	}{
		"none":       {"an empty response after the wait is not an error", 10 * time.Second, time.Hour, []string{}, 10 * time.Second},
		"later":      {"a change ends the wait", 10 * time.Second, 3 * time.Second, []string{"one-0000 pending"}, 3 * time.Second},
		"before":     {"earlier changes are sent immediately", 10 * time.Second, 0, []string{"one-0000 pending"}, 0},
		"no wait":    {"a request without a wait returns immediately", 0, time.Hour, []string{}, 0},
		"short wait": {"a short wait may last one poll longer", time.Millisecond, time.Hour, []string{}, 0},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			withFakeTime(t, func(f *fixture) {
				const look = 250 * time.Millisecond

				feed := f.follow()
				began := time.Now()
				happened := make(chan struct{})

				go func() {
					defer close(happened)

					select {
					case <-time.After(c.after):
						f.acceptMany("one", 1, time.Now())
					case <-f.Context().Done():
					}
				}()

				if c.after == 0 {
					<-happened
				}

				got := feed.next(c.wait)
				if diff := cmp.Diff(c.want, got); diff != "" {
					f.Errorf("%s: -want +got:\n%s", c.reason, diff)
				}

				if took := time.Since(began); took < c.wantTook || took > c.wantTook+look {
					f.Errorf("%s: took %s, want %s", c.reason, took, c.wantTook)
				}

				<-happened // fake time
			})
		})
	}
}

func TestWaitEndsWithTheRequest(t *testing.T) {
	withFakeTime(t, func(f *fixture) {
		feed := f.follow()
		ctx, leave := context.WithTimeout(f.Context(), 3*time.Second)
		began := time.Now()

		defer leave()

		cursor, changes, err := f.service.Changes(ctx, feed.cursor, time.Minute)
		if len(changes) != 0 || time.Since(began) > 4*time.Second {
			f.Errorf("got %v after %s, %v", changes, time.Since(began), err)
		}

		if err == nil && cursor == "" {
			f.Error("the response has no cursor")
		}

		f.acceptMany("one", 1, time.Now())
		feed.expect("the next request misses nothing", "one-0000 pending")
	})
}

// TestWaitEndsWhenTheServerDrains shuts down a replica while a broker waits for changes. The replica must immediately return the
// cursor, so that the broker can continue with another replica.
func TestWaitEndsWhenTheServerDrains(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	feed := f.follow()
	asked := make(chan struct{})

	server, err := httpserver.Listen(t.Context(), "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)

		cursor, changes, err := f.service.Changes(r.Context(), feed.cursor, time.Hour)
		if err != nil || len(changes) != 0 {
			t.Errorf("got %v, %v, want neither changes nor an error", changes, err)
		}

		_, _ = io.WriteString(w, cursor)
	}), 0)
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	ended := make(chan error, 1)

	go func() { ended <- server.Run(ctx) }()

	go func() {
		<-asked
		stop()
	}()

	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}

	response, err := client.Get("http://" + server.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()

	cursor, err := io.ReadAll(response.Body)
	if err != nil || string(cursor) != feed.cursor {
		t.Errorf("got the cursor %q, %v, want %q", cursor, err, feed.cursor)
	}

	if err := <-ended; err != nil {
		t.Error(err)
	}

	f.acceptMany("one", 1, time.Now())
	feed.expect("the next request misses nothing", "one-0000 pending")
}

func TestInvalidCursor(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))

	for name, text := range map[string]string{"no base64": "a cursor!", "too short": "aHVzaA", "cut": f.follow().cursor[:9]} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := f.service.Changes(t.Context(), text, time.Minute); !failure.Is(err, failure.Invalid) {
				t.Errorf("got %v, want the hint to start again without a cursor", err)
			}
		})
	}
}
