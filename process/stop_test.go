package process_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
)

// stoppedDuringClaim is a store that stops its engine during a claim, between the commit and the response.
type stoppedDuringClaim struct {
	process.Store

	stop context.CancelFunc
}

func (i stoppedDuringClaim) Claim(ctx context.Context, claim process.Claim) ([]process.Claimed, error) {
	claimed, err := i.Store.Claim(context.WithoutCancel(ctx), claim)

	i.stop()

	if ctx.Err() != nil {
		return nil, ctx.Err() // the response is lost
	}

	return claimed, err
}

func TestClaimDuringAStopIsHandedBack(t *testing.T) {
	inBubble(t, func(b *fixture) {
		b.accept("one", "instance")

		ctx, stop := context.WithCancel(b.Context())
		untouched := succeeding("Untouched")

		if err := b.engine(stoppedDuringClaim{b.store, stop}, stage("only", untouched)).Run(ctx); err != nil {
			b.Fatal(err)
		}

		if record := b.get("one"); record.Lease.Owner != "" || untouched.runs() != 0 {
			b.Errorf("%q still has the lease after %d runs: other replicas must wait until it expires",
				record.Lease.Owner, untouched.runs())
		}

		b.start(b.engine(b.store, stage("only", untouched)))

		if record := b.await("one"); record.State != process.Succeeded {
			b.Errorf("another replica ended it as %s", record.State)
		}
	})
}

// hangingStore is a store that does not respond while hangs is set: each call blocks until its context ends.
type hangingStore struct {
	process.Store

	hangs atomic.Bool
}

func (s *hangingStore) wait(ctx context.Context) error {
	if s.hangs.Load() {
		<-ctx.Done()
	}

	return ctx.Err()
}

func (s *hangingStore) Due(ctx context.Context, kinds []string, now time.Time) ([]process.Due, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}

	return s.Store.Due(ctx, kinds, now)
}

func (s *hangingStore) Renew(ctx context.Context, renewal process.Renewal) (map[string]process.State, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}

	return s.Store.Renew(ctx, renewal)
}

func (s *hangingStore) Save(ctx context.Context, progress process.Progress) (process.State, error) {
	if err := s.wait(ctx); err != nil {
		return "", err
	}

	return s.Store.Save(ctx, progress)
}

func TestStopEndsWhileTheStoreHangs(t *testing.T) {
	cases := map[string]struct {
		reason string
		took   time.Duration
	}{
		"between steps": {"the step ends during the stop, but its result cannot be stored", 0},
		"during a step": {"the step uses up the grace period, and its lease cannot be returned", 14 * time.Second},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *fixture) {
				const most = 25 * time.Second // time limit for stopping a service

				store := &hangingStore{Store: b.store}
				begun := make(chan struct{})
				work := &step{name: "Work"}
				work.work = func(_ context.Context, o operation) (operation, time.Duration, error) {
					if work.runs() == 1 {
						store.hangs.Store(true)
						close(begun)
						time.Sleep(c.took)
					}

					return o, 0, nil
				}

				stop := b.start(b.engine(store, stage("only", work)))
				b.accept("op", "instance")
				<-begun

				stopping := time.Now()

				stop()

				if took := time.Since(stopping); took > most {
					b.Errorf("%s: the stop took %s", c.reason, took)
				}

				store.hangs.Store(false)
				b.start(b.engine(store, stage("only", work)))

				if record := b.await("op"); record.State != process.Succeeded || work.runs() != 2 {
					b.Errorf("%s: another replica ended it as %s after %d runs", c.reason, record.State, work.runs())
				}
			})
		})
	}
}

// TestStepThatIgnoresTheStop stops a replica while it runs a step that ignores its context. Another replica must complete the
// operation once the grace period and the lease have passed, and the late result of the step must not be stored.
func TestStepThatIgnoresTheStop(t *testing.T) {
	inBubble(t, func(b *fixture) {
		const (
			stepDuration = time.Hour
			// longest is the sum of the grace period, a lease and two poll intervals.
			longest = 15*time.Second + 6*time.Second + 2*time.Second
		)

		begun := make(chan struct{}, 2)
		work := &step{name: "Work"}
		work.work = func(_ context.Context, o operation) (operation, time.Duration, error) {
			begun <- struct{}{}

			if work.runs() == 1 {
				time.Sleep(stepDuration)

				o.Data.Trace = append(o.Data.Trace, "too late")
			}

			return o, 0, nil
		}

		stop := b.start(b.engine(b.store, stage("only", work)))
		b.accept("op", "instance")
		<-begun
		b.start(b.engine(b.store, stage("only", work)))

		stopping := time.Now()

		go stop()

		record := b.await("op")
		if took := time.Since(stopping); record.State != process.Succeeded || took > longest {
			b.Errorf("another replica ended it as %s after %s, want within %s", record.State, took, longest)
		}

		time.Sleep(2 * stepDuration)

		if diff := cmp.Diff(record, b.get("op")); diff != "" || len(b.trace(record)) > 0 {
			b.Errorf("a late result was stored: -before +after:\n%s%v", diff, b.trace(record))
		}
	})
}

// hangingClaims is a store whose Claim blocks until its context ends while hangs is set. It sends on claimed when a call starts
// to block.
type hangingClaims struct {
	process.Store

	hangs   atomic.Bool
	claimed chan struct{}
}

func (h *hangingClaims) Claim(ctx context.Context, claim process.Claim) ([]process.Claimed, error) {
	if h.hangs.Load() {
		h.claimed <- struct{}{}

		<-ctx.Done()

		return nil, ctx.Err()
	}

	return h.Store.Claim(ctx, claim)
}

func TestGraceStartsWithTheStop(t *testing.T) {
	inBubble(t, func(b *fixture) {
		const grace = 15 * time.Second

		store := &hangingClaims{Store: b.store, claimed: make(chan struct{}, 1)}
		long := &step{name: "Long", work: func(ctx context.Context, o operation) (operation, time.Duration, error) {
			store.hangs.Store(true)
			<-ctx.Done()

			return o, 0, ctx.Err()
		}}

		stop := b.start(b.engine(store, stage("only", long)))
		b.accept("running", "instance-1")
		time.Sleep(2 * time.Second) // time for the step to start
		b.accept("waiting", "instance-2")
		<-store.claimed

		stopping := time.Now()

		stop()

		if took := time.Since(stopping); took != grace {
			b.Errorf("the step ran for %s, want %s", took, grace)
		}

		if record := b.get("running"); record.Lease.Owner != "" || long.runs() != 1 {
			b.Errorf("after %d runs the operation is leased by %q, want it handed back", long.runs(), record.Lease.Owner)
		}
	})
}
