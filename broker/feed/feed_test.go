package feed_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/feed"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is a scripted response of the Provisioner.
type answer struct {
	changes provisionerclient.Changes
	err     error
}

type request struct {
	After string
	At    time.Duration // since the feed started
}

// fixture fakes the Provisioner and the broker's stores. It returns the scripted answers in order. Later requests wait
// until their contexts end.
type fixture struct {
	*testing.T

	mutex  sync.Mutex
	began  time.Time
	script []answer
	open   bool // the script may be longer than the test needs
	calls  []request
	events [][]string
	wakes  int
	stored string // the stored cursor
	// unknown makes Wake find no waiting operation. err is the error that the next call of Wake returns.
	unknown bool
	err     error
	log     *logtest.Hook
}

func (s *fixture) FeedCursor(context.Context) (string, error) { return s.stored, nil }

func (s *fixture) SaveFeedCursor(_ context.Context, cursor string) error {
	s.stored = cursor

	return nil
}

func (s *fixture) Changes(ctx context.Context, after string, wait time.Duration) (provisionerclient.Changes, error) {
	s.mutex.Lock()
	s.calls = append(s.calls, request{After: after, At: time.Since(s.began)})

	if wait != 20*time.Second {
		s.Errorf("the feed asks the Provisioner to wait for %s", wait)
	}

	if len(s.script) > 0 {
		next := s.script[0]
		s.script = s.script[1:]
		s.mutex.Unlock()

		return next.changes, next.err
	}

	s.mutex.Unlock()

	<-ctx.Done()

	return provisionerclient.Changes{}, ctx.Err()
}

func (s *fixture) Wake(_ context.Context, events []string, now time.Time) (int64, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	if now.IsZero() {
		s.Error("Wake was called with a zero time")
	}

	if s.err != nil {
		err := s.err
		s.err = nil

		return 0, err
	}

	if len(events) > 0 {
		s.events = append(s.events, events)
	}

	if s.unknown {
		return 0, nil
	}

	return int64(len(events)), nil
}

// play runs a feed with the scripted answers for an hour of fake time, and then calls test. All answers must have been
// used, unless the script is open.
func play(t *testing.T, s *fixture, test func(f *feed.Feed)) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) {
		s.T, s.began = t, time.Now()

		log, hook := logtest.NewNullLogger()
		s.log = hook
		follow := feed.New(s, s, s, func() { s.wakes++ }, clock.RealClock{}, log)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)

		go func() { ended <- follow.Run(ctx) }()

		time.Sleep(time.Hour) // fake time: long enough for every script
		synctest.Wait()

		if len(s.script) > 0 && !s.open {
			t.Errorf("the feed has stopped: %d scripted answers are left", len(s.script))
		}

		test(follow)

		stopping := time.Now()

		stop()

		if err := <-ended; err != nil || time.Since(stopping) != 0 {
			t.Errorf("stopping took %s and returned %v", time.Since(stopping), err)
		}
	})
}

func changes(cursor string, operations ...string) answer {
	page := provisionerclient.Changes{Cursor: cursor}
	for _, id := range operations {
		page.Operations = append(page.Operations, provisionerclient.ChangedOperation{OperationID: id})
	}

	return answer{changes: page}
}

func fails(err error) answer { return answer{err: err} }

func TestChangesWakeOperations(t *testing.T) {
	s := &fixture{script: []answer{changes("c-1"), changes("c-2", "op-1", "op-2"), changes("c-3"), changes("c-4", "op-3")}}

	play(t, s, func(*feed.Feed) {
		want := [][]string{{"provisioner operation op-1", "provisioner operation op-2"}, {"provisioner operation op-3"}}
		if diff := cmp.Diff(want, s.events); diff != "" {
			t.Errorf("events -want +got:\n%s", diff)
		}

		if s.wakes != 2 {
			t.Errorf("the engine was woken %d times, want 2", s.wakes)
		}

		if diff := cmp.Diff([]request{{"", 0}, {"c-1", 0}, {"c-2", 0}, {"c-3", time.Second}, {"c-4", time.Second}}, s.calls); diff != "" {
			t.Errorf("each request has the cursor of the last answer; an immediate empty answer is followed by a pause: -want +got:\n%s", diff)
		}
	})
}

// TestRestartResumesAtCursor checks that a restarted broker receives all changes since the stored cursor.
func TestRestartResumesAtCursor(t *testing.T) {
	s := &fixture{stored: "c-9", script: []answer{changes("c-10", "missed"), changes("c-10"), changes("c-11", "op")}}

	play(t, s, func(*feed.Feed) {
		want := [][]string{{"provisioner operation missed"}, {"provisioner operation op"}}
		if diff := cmp.Diff(want, s.events); diff != "" {
			t.Errorf("events -want +got:\n%s", diff)
		}

		if s.calls[0].After != "c-9" || s.stored != "c-11" {
			t.Errorf("the feed resumed at %q and stored %q", s.calls[0].After, s.stored)
		}
	})
}

// TestUnknownCursor starts with a stored cursor that the Provisioner rejects. The feed must continue without a cursor.
func TestUnknownCursor(t *testing.T) {
	s := &fixture{stored: "c-9", script: []answer{fails(failure.New(failure.Permanent, "this is no cursor")), changes("d-1")}}

	play(t, s, func(*feed.Feed) {
		if diff := cmp.Diff([]request{{"c-9", 0}, {"", time.Second}, {"d-1", time.Second}}, s.calls); diff != "" || s.stored != "d-1" {
			t.Errorf("stored cursor %q, calls -want +got:\n%s", s.stored, diff)
		}
	})
}

func TestUnrelatedChangesWakeNothing(t *testing.T) {
	s := &fixture{unknown: true, script: []answer{changes("c-1"), changes("c-2", "of another broker")}}

	play(t, s, func(*feed.Feed) {
		if s.wakes != 0 {
			t.Errorf("the engine was woken %d times", s.wakes)
		}
	})
}

func TestInterruptions(t *testing.T) {
	away := fails(failure.New(failure.Transient, "away"))
	noFeed := fails(failure.Wrap(failure.Permanent, provisionerclient.ErrNoFeed, "no feed"))
	forgotten := fails(failure.New(failure.Permanent, "this is no cursor"))

	cases := map[string]struct {
		reason string
		script []answer
		err    error // returned once by the broker's database
		want   []request
	}{
		"away": {
			reason: "the feed resumes at its cursor and doubles the pause, up to half a minute",
			script: []answer{changes("c-1"), away, away, away, away, away, away, away, changes("c-2", "op")},
			want: []request{
				{"", 0},
				{"c-1", 0},
				{"c-1", time.Second},
				{"c-1", 3 * time.Second},
				{"c-1", 7 * time.Second},
				{"c-1", 15 * time.Second},
				{"c-1", 31 * time.Second},
				{"c-1", 61 * time.Second},
				{"c-1", 91 * time.Second},
				{"c-2", 91 * time.Second},
			},
		},
		"away again": {
			reason: "after a success the next pause is short again",
			script: []answer{changes("c-1"), away, away, changes("c-2", "op"), away, changes("c-3", "op")},
			want: []request{
				{"", 0},
				{"c-1", 0},
				{"c-1", time.Second},
				{"c-1", 3 * time.Second},
				{"c-2", 3 * time.Second},
				{"c-2", 4 * time.Second},
				{"c-3", 4 * time.Second},
			},
		},
		"away from the start": {
			reason: "the Provisioner may start later", script: []answer{away, changes("c-1")},
			want: []request{{"", 0}, {"", time.Second}, {"c-1", time.Second}},
		},
		"cursor unknown": {
			reason: "a new Provisioner does not know the old cursor", script: []answer{changes("c-1"), forgotten, changes("d-1")},
			want: []request{{"", 0}, {"c-1", 0}, {"", time.Second}, {"d-1", time.Second}},
		},
		"no feed": {
			reason: "the broker rarely checks whether the Kyma Provisioner was replaced", script: []answer{noFeed, noFeed, changes("c-1")},
			want: []request{{"", 0}, {"", 5 * time.Minute}, {"", 10 * time.Minute}, {"c-1", 10 * time.Minute}},
		},
		"feed lost": {
			reason: "operations poll if the Kyma Provisioner replaces the Provisioner", script: []answer{changes("c-1"), noFeed, changes("d-1")},
			want: []request{{"", 0}, {"c-1", 0}, {"", 5 * time.Minute}, {"d-1", 5 * time.Minute}},
		},
		"database away": {
			reason: "changes that could not be processed are requested again", err: errors.New("away"),
			script: []answer{changes("c-1", "op-1"), changes("c-1", "op-1")},
			want:   []request{{"", 0}, {"", time.Second}, {"c-1", time.Second}},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &fixture{script: c.script, err: c.err}

			play(t, s, func(*feed.Feed) {
				if diff := cmp.Diff(c.want, s.calls); diff != "" {
					t.Errorf("%s: -want +got:\n%s", c.reason, diff)
				}
			})
		})
	}
}

func TestPace(t *testing.T) {
	noFeed := fails(failure.Wrap(failure.Permanent, provisionerclient.ErrNoFeed, "no feed"))

	forever := make([]answer, 13) // five minutes apart, longer than play runs
	for i := range forever {
		forever[i] = noFeed
	}

	cases := map[string]struct {
		reason  string
		script  []answer
		elapsed time.Duration
		want    time.Duration
	}{
		"feed at first":  {"the feed works, polling is a safeguard", []answer{changes("c-1")}, 0, 10 * time.Minute},
		"feed for long":  {"the feed works, and the operation takes long", []answer{changes("c-1")}, time.Hour, 10 * time.Minute},
		"none at first":  {"quick operations are polled quickly", forever, 0, time.Second},
		"none for a bit": {"a twentieth of the elapsed time", forever, 100 * time.Second, 5 * time.Second},
		"none for long":  {"the interval is bounded, because users wait", forever, time.Hour, 20 * time.Second},
		"recovered":      {"a feed that has recovered makes polling a safeguard again", []answer{noFeed, changes("c-1")}, time.Minute, 10 * time.Minute},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			play(t, &fixture{script: c.script}, func(f *feed.Feed) {
				different := map[time.Duration]bool{}

				for range 50 {
					got := f.Pace(c.elapsed)
					if got < c.want || got > c.want*11/10 {
						t.Fatalf("%s: got %s, want %s plus at most a tenth", c.reason, got, c.want)
					}

					different[got] = true
				}

				if len(different) < 2 {
					t.Errorf("%s: without jitter, many operations would poll at the same moment", c.reason)
				}
			})
		})
	}
}

func TestKind(t *testing.T) {
	noFeed := fails(failure.Wrap(failure.Permanent, provisionerclient.ErrNoFeed, "no feed"))
	away := fails(failure.New(failure.Transient, "away"))

	forever := func(first ...answer) []answer {
		for range 200 { // longer than play runs
			first = append(first, away)
		}

		return first
	}

	cases := map[string]struct {
		reason string
		script []answer
		want   provisionerclient.Kind
	}{
		"unknown":         {"the Provisioner has never responded", forever(away), provisionerclient.KindUnknown},
		"ours":            {"the Provisioner has a feed", []answer{changes("c-1")}, provisionerclient.KindOurs},
		"ours, away":      {"the kind does not change during an outage", forever(changes("c-1")), provisionerclient.KindOurs},
		"Kyma, then away": {"the kind does not change during an outage", forever(noFeed), provisionerclient.KindKyma},
		"Kyma, then ours": {"the Provisioner was replaced", []answer{noFeed, changes("c-1")}, provisionerclient.KindOurs},
		"cursor rejected": {"a Provisioner that rejects a cursor has a feed", []answer{changes("c-1"), fails(failure.New(failure.Permanent, "no cursor")), changes("c-2")}, provisionerclient.KindOurs},
		"ours, then Kyma": {"the Provisioner was replaced", forever(changes("c-1"), noFeed), provisionerclient.KindKyma},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &fixture{script: c.script, open: true}

			play(t, s, func(f *feed.Feed) {
				if got := f.Kind(); got != c.want {
					t.Errorf("%s: the kind is %d, want %d", c.reason, got, c.want)
				}
			})
		})
	}
}

// TestLog checks that errors are logged as warnings, and that a Provisioner without a feed is logged once at info.
func TestLog(t *testing.T) {
	noFeed := fails(failure.Wrap(failure.Permanent, provisionerclient.ErrNoFeed, "no feed"))
	away := fails(failure.New(failure.Transient, "away"))

	const (
		without = "info: the Provisioner has no change feed (Kyma Provisioner): operations are polled"
		failed  = "warning: cannot read the Provisioner's change feed; polling operations until it works again"
	)

	cases := map[string]struct {
		script []answer
		want   []string
	}{
		"no errors":           {[]answer{changes("c-1", "op"), changes("c-2", "op")}, nil},
		"Kyma Provisioner":    {[]answer{noFeed, noFeed, noFeed, changes("c-1")}, []string{without}},
		"an outage of it":     {[]answer{noFeed, away, noFeed, changes("c-1")}, []string{without, failed}},
		"replaced twice":      {[]answer{noFeed, changes("c-1"), noFeed, changes("c-2")}, []string{without, without}},
		"outage":              {[]answer{changes("c-1"), away, away, changes("c-2")}, []string{failed, failed}},
		"cursor not accepted": {[]answer{changes("c-1"), fails(failure.New(failure.Permanent, "no cursor")), changes("d-1")}, []string{failed}},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &fixture{script: c.script}

			play(t, s, func(*feed.Feed) {
				var got []string
				for _, entry := range s.log.AllEntries() {
					got = append(got, entry.Level.String()+": "+entry.Message)
				}

				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

func TestPaceBeforeTheFeedRuns(t *testing.T) {
	f := feed.New(nil, nil, nil, nil, clock.RealClock{}, logging.Discard())
	if got := f.Pace(0); got > 2*time.Second {
		t.Errorf("got %s before Run, want the pace without a feed", got)
	}
}
