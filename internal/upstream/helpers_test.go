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

// Copies of the package's constants: an accidental change of a constant fails the tests.
const (
	threshold   = 5
	pause       = 2 * time.Second
	patience    = 10 * time.Second
	slotTimeout = 5 * time.Second
)

// act is the behavior of the fake upstream for one request.
type act func(*http.Request) (*http.Response, error)

func answers(status int) act {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("content"))}, nil
	}
}

func fails(err error) act {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// hangs returns an act that waits before it performs another act. If the caller cancels during the wait, it
// returns the error of the context.
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

// netError imitates a network error of net/http, which contains an address in its text.
type netError struct{ error }

func (e *netError) Error() string   { return "dial tcp 10.1.2.3:443: " + e.error.Error() }
func (e *netError) Unwrap() error   { return e.error }
func (e *netError) Timeout() bool   { return false }
func (e *netError) Temporary() bool { return false }

// fixture is a System in front of a fake upstream, in fake time.
type fixture struct {
	*testing.T

	system *upstream.System
	client http.Client
	act    atomic.Pointer[act]
	calls  atomic.Int64
}

// RoundTrip implements http.RoundTripper for the fake upstream. It performs the current act.
func (b *fixture) RoundTrip(r *http.Request) (*http.Response, error) {
	b.calls.Add(1)

	return (*b.act.Load())(r)
}

func (b *fixture) respondWith(act act) { b.act.Store(&act) }

func onFakeTime(t *testing.T, calls int, test func(b *fixture)) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) { test(newFixture(t, "garden", calls)) })
}

// newFixture returns a fixture with an upstream that responds with status 200.
func newFixture(t *testing.T, name string, calls int) *fixture {
	t.Helper()

	return newFixtureWith(t, upstream.Options{
		Name: name, Title: "the " + name, Component: "a " + name, Calls: calls, Variable: "APP_GARDEN_CALLS",
	})
}

func newFixtureWith(t *testing.T, options upstream.Options) *fixture {
	t.Helper()

	b := &fixture{T: t, system: upstream.New(options)}
	b.client.Transport = b.system.Transport(b)
	b.respondWith(answers(http.StatusOK))

	return b
}

// call sends a request with a timeout, reads the response, and returns the error of the client.
func (b *fixture) call(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(b.Context(), timeout)
	defer cancel()

	return b.callIn(ctx)
}

func (b *fixture) callIn(ctx context.Context) error {
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

// open makes calls fail until the circuit breaker is open.
func (b *fixture) open() {
	b.Helper()
	b.respondWith(down())

	for range threshold {
		_ = b.call(time.Minute)
	}

	b.state("enough failures in a row", upstream.Open)
}

func (b *fixture) state(reason string, want upstream.State) {
	b.Helper()

	if got := b.system.Status().State; got != want {
		b.Fatalf("%s: the circuit breaker is %s, want %s", reason, got, want)
	}
}
