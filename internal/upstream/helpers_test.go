package upstream_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/environment-broker/environment-broker/internal/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What a guard does by itself.
const (
	threshold   = 5
	pause       = 2 * time.Second
	patience    = 10 * time.Second
	longestWait = 5 * time.Second
)

// act is how a system behaves.
type act func(*http.Request) (*http.Response, error)

func answers(status int) act {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("content"))}, nil
	}
}

func fails(err error) act {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// hangs answers after the time, unless the caller leaves.
func hangs(took time.Duration, then act) act {
	return func(r *http.Request) (*http.Response, error) {
		select {
		case <-time.After(took):
			return then(r)
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

func down() act { return fails(&netError{syscall.ECONNREFUSED}) }

// netError is what a transport says: with an address.
type netError struct{ error }

func (e *netError) Error() string   { return "dial tcp 10.1.2.3:443: " + e.error.Error() }
func (e *netError) Unwrap() error   { return e.error }
func (e *netError) Timeout() bool   { return false }
func (e *netError) Temporary() bool { return false }

// bench is a guarded system on fake time.
type bench struct {
	*testing.T

	guard  *upstream.Guard
	client http.Client
	act    atomic.Pointer[act]
	calls  atomic.Int64
}

// RoundTrip is the system.
func (b *bench) RoundTrip(r *http.Request) (*http.Response, error) {
	b.calls.Add(1)

	return (*b.act.Load())(r)
}

func (b *bench) now(act act) { b.act.Store(&act) }

func inBubble(t *testing.T, calls int, test func(b *bench)) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) { test(guarded(t, "garden", calls)) })
}

// guarded is a system of that name. It answers.
func guarded(t *testing.T, name string, calls int) *bench {
	t.Helper()

	b := &bench{T: t, guard: upstream.New(upstream.Options{
		System: name, Title: "the " + name, Component: "a " + name, Calls: calls, Variable: "APP_GARDEN_CALLS",
	})}
	b.client.Transport = b.guard.Transport(b)
	b.now(answers(http.StatusOK))

	return b
}

// call makes a call that takes no longer than the time-out, reads the answer, and returns the error as a client gets it.
func (b *bench) call(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(b.Context(), timeout)
	defer cancel()

	return b.callIn(ctx)
}

func (b *bench) callIn(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://garden", strings.NewReader("order"))
	if err != nil {
		return err
	}

	response, err := b.client.Do(request)
	if err != nil {
		return err
	}

	_, err = io.ReadAll(response.Body)

	return errors.Join(err, response.Body.Close())
}

// open has the breaker open.
func (b *bench) open() {
	b.Helper()
	b.now(down())

	for range threshold {
		_ = b.call(time.Minute)
	}

	b.state("enough failures in a row", upstream.Open)
}

func (b *bench) state(reason string, want upstream.State) {
	b.Helper()

	if got := b.guard.Status().State; got != want {
		b.Fatalf("%s: the breaker is %s, want %s", reason, got, want)
	}
}
