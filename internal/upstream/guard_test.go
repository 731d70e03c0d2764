package upstream_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

func TestWhatOpensTheBreaker(t *testing.T) {
	cases := map[string]struct {
		reason string
		act    act
		want   string
	}{
		"refused":     {"nobody listens", down(), "it refused the connection"},
		"reset":       {"somebody was there", fails(&netError{syscall.ECONNRESET}), "the connection broke"},
		"closed":      {"a proxy without its server", fails(io.EOF), "the connection broke"},
		"no name":     {"it may be about to come", fails(&net.DNSError{Err: "no such host", Name: "secret.internal"}), "its name is not known"},
		"stranger":    {"this is not the system", fails(&tls.CertificateVerificationError{Err: errors.New("secret")}), "its certificate is not trusted"},
		"other":       {"whatever kept the answer from coming", fails(errors.New("secret 10.1.2.3")), "it could not be reached"},
		"slow":        {"no answer is no answer", hangs(time.Hour, answers(http.StatusOK)), "it did not answer in time"},
		"broken off":  {"half an answer is none", breaksOff, "the connection broke"},
		"internal":    {"it has lost its way", answers(http.StatusInternalServerError), "it answered with HTTP status 500 Internal Server Error"},
		"gateway":     {"what is behind the proxy is away", answers(http.StatusBadGateway), "it answered with HTTP status 502 Bad Gateway"},
		"unavailable": {"it says so itself", answers(http.StatusServiceUnavailable), "it answered with HTTP status 503 Service Unavailable"},

		"fine":         {"it is there", answers(http.StatusOK), ""},
		"refuses":      {"who refuses is there", answers(http.StatusUnprocessableEntity), ""},
		"unauthorized": {"credentials are not the system's fault", answers(http.StatusUnauthorized), ""},
		"too many":     {"it asks for less, not for nothing", answers(http.StatusTooManyRequests), ""},
		"given up":     {"a caller that leaves says nothing about the system", fails(context.Canceled), ""},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(b *bench) {
				b.now(c.act)

				began := time.Now()

				for range threshold {
					_ = b.call(time.Second)
				}

				want := upstream.Status{System: "garden", Component: "a garden", State: upstream.Closed, Calls: 1}
				if c.want != "" {
					want.State, want.Failures, want.FailingSince, want.LastFault = upstream.Open, threshold, began, c.want
					want.Outages, want.NextTry = 1, time.Now().Add(pause)
				}

				if diff := cmp.Diff(want, b.guard.Status(), cmpopts.IgnoreUnexported(upstream.Status{})); diff != "" {
					b.Errorf("%s: -want +got\n%s", c.reason, diff)
				}
			})
		})
	}
}

// breaksOff answers with half a body.
func breaksOff(*http.Request) (*http.Response, error) {
	body := io.MultiReader(strings.NewReader("half"), errorReader{})

	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body)}, nil
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestFailuresHaveToBeInARow(t *testing.T) {
	inBubble(t, 1, func(b *bench) {
		for range 3 {
			b.now(down())

			for range threshold - 1 {
				_ = b.call(time.Second)
			}

			b.now(answers(http.StatusNotFound))
			_ = b.call(time.Second)
		}

		b.state("an answer in between shows that the system is there", upstream.Closed)
	})
}

func TestOpenBreakerExplainsItself(t *testing.T) {
	inBubble(t, 1, func(b *bench) {
		b.open()

		began, made := time.Now().UTC(), b.calls.Load()

		known := failure.Of(b.call(time.Minute))
		want := &failure.Error{
			Kind: failure.Transient, Reason: failure.ReasonSystemAway, Component: "a garden",
			Text: "the garden is not called for now: 5 calls in a row have failed since " + began.Format(time.RFC3339) +
				", the last one because it refused the connection; it is tried again at " + began.Add(pause).Format(time.RFC3339),
		}

		if diff := cmp.Diff(want, known); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}

		if b.calls.Load() != made {
			b.Error("a call was made")
		}
	})
}

func TestOneTrialAtATime(t *testing.T) {
	inBubble(t, 10, func(b *bench) {
		b.open()
		time.Sleep(pause + time.Millisecond)

		made := b.calls.Load()
		b.now(hangs(time.Second, down()))

		for range 8 {
			go func() { _ = b.call(time.Minute) }()
		}

		synctest.Wait()

		known := failure.Of(b.call(time.Minute))
		if b.calls.Load() != made+1 || !strings.HasSuffix(known.Text, "it is being tried again at this moment") {
			b.Errorf("%d trials at the same time, the others read %q", b.calls.Load()-made, known.Text)
		}

		b.state("the trial is under way", upstream.HalfOpen)
		time.Sleep(time.Second)
		synctest.Wait()
		b.state("the trial failed", upstream.Open)

		time.Sleep(pause + time.Millisecond)
		b.now(answers(http.StatusForbidden))

		if err := b.call(time.Minute); err != nil {
			b.Error(err)
		}

		b.state("an answer ends the outage, whatever it says", upstream.Closed)
	})
}

func TestTrialThatHangsKeepsNobodyFromTheNext(t *testing.T) {
	inBubble(t, 10, func(b *bench) {
		b.open()
		time.Sleep(pause + time.Millisecond)
		b.now(hangs(time.Minute, answers(http.StatusOK)))

		slow := make(chan error, 1)

		go func() { slow <- b.call(time.Hour) }()

		time.Sleep(patience + pause + time.Second)
		b.state("the pause after the trial's patience is over", upstream.HalfOpen)

		b.now(down())

		made := b.calls.Load()
		if _ = b.call(time.Minute); b.calls.Load() != made+1 {
			b.Error("the next trial was not made")
		}

		if err := <-slow; err != nil {
			b.Errorf("a trial that takes long is cut off: %v", err)
		}

		b.state("it was answered after all", upstream.Closed)

		if err := b.call(time.Minute); failure.Of(err).Reason == failure.ReasonSystemAway {
			b.Errorf("calls are not made: %v", err)
		}
	})
}

func TestTrialWhoseCallerLeavesIsFollowedByAnother(t *testing.T) {
	inBubble(t, 10, func(b *bench) {
		b.open()
		time.Sleep(pause + time.Millisecond)

		b.now(fails(context.Canceled))
		_ = b.call(time.Minute)

		b.now(answers(http.StatusOK))

		if err := b.call(time.Minute); err != nil {
			b.Error(err)
		}

		b.state("the system is there", upstream.Closed)
	})
}
