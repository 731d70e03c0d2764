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

func TestOutcomesOfCalls(t *testing.T) {
	cases := map[string]struct {
		reason string
		act    act
		want   string
	}{
		"refused":     {"nothing listens on the port", down(), "it refused the connection"},
		"reset":       {"the server closes the connection", fails(&netError{syscall.ECONNRESET}), "the connection was lost"},
		"closed":      {"a proxy loses the connection to its server", fails(io.EOF), "the connection was lost"},
		"no name":     {"the DNS record is missing", fails(&net.DNSError{Err: "no such host", Name: "secret.internal"}), "its host name could not be resolved"},
		"certificate": {"another server responds", fails(&tls.CertificateVerificationError{Err: errors.New("secret")}), "its certificate is not trusted"},
		"other":       {"any other error of the transport", fails(errors.New("secret 10.1.2.3")), "it could not be reached"},
		"slow":        {"a call that exceeds its deadline", hangs(time.Hour, answers(http.StatusOK)), "it did not respond in time"},
		"broken off":  {"the response ends early", breaksOff, "the connection was lost"},
		"internal":    {"the server fails", answers(http.StatusInternalServerError), "it returned HTTP status 500 Internal Server Error"},
		"gateway":     {"the server behind a proxy is down", answers(http.StatusBadGateway), "it returned HTTP status 502 Bad Gateway"},
		"unavailable": {"the server reports that it is overloaded", answers(http.StatusServiceUnavailable), "it returned HTTP status 503 Service Unavailable"},

		"fine":         {"the call succeeds", answers(http.StatusOK), ""},
		"rejected":     {"a system that rejects a call works", answers(http.StatusUnprocessableEntity), ""},
		"unauthorized": {"the service's credentials are at fault, not the system", answers(http.StatusUnauthorized), ""},
		"too many":     {"the server limits the rate but works", answers(http.StatusTooManyRequests), ""},
		"given up":     {"the caller canceled the call", fails(context.Canceled), ""},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			onFakeTime(t, 1, func(b *fixture) {
				b.respondWith(c.act)

				began := time.Now()

				for range threshold {
					_ = b.call(time.Second)
				}

				want := upstream.Status{System: "garden", Component: "a garden", State: upstream.Closed, Calls: 1}
				if c.want != "" {
					want.State, want.Failures, want.FailingSince, want.LastFault = upstream.Open, threshold, began, c.want
					want.Outages, want.NextTry = 1, time.Now().Add(pause)
				}

				if diff := cmp.Diff(want, b.system.Status(), cmpopts.IgnoreUnexported(upstream.Status{}), cmpopts.IgnoreFields(upstream.Status{}, "Latency")); diff != "" {
					b.Errorf("%s: -want +got\n%s", c.reason, diff)
				}
			})
		})
	}
}

// breaksOff responds with a body that ends prematurely.
func breaksOff(*http.Request) (*http.Response, error) {
	body := io.MultiReader(strings.NewReader("half"), errorReader{})

	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body)}, nil
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestAnswerResetsFailures(t *testing.T) {
	onFakeTime(t, 1, func(b *fixture) {
		for range 3 {
			b.respondWith(down())

			for range threshold - 1 {
				_ = b.call(time.Second)
			}

			b.respondWith(answers(http.StatusNotFound))
			_ = b.call(time.Second)
		}

		b.state("every fifth call succeeds", upstream.Closed)
	})
}

func TestErrorWhileOpen(t *testing.T) {
	onFakeTime(t, 1, func(b *fixture) {
		b.open()

		began, made := time.Now().UTC(), b.calls.Load()

		ferr := failure.Of(b.call(time.Minute))
		want := &failure.Error{
			Kind: failure.Transient, Reason: failure.ReasonSystemUnavailable, Component: "a garden",
			Text: "the garden is unavailable: 5 calls in a row have failed since " + began.Format(time.RFC3339) +
				", the last one because it refused the connection; the next attempt is at " + began.Add(pause).Format(time.RFC3339),
		}

		if diff := cmp.Diff(want, ferr); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}

		if b.calls.Load() != made {
			b.Error("the call was made")
		}
	})
}

func TestOneTrialAtATime(t *testing.T) {
	onFakeTime(t, 10, func(b *fixture) {
		b.open()
		time.Sleep(pause + time.Millisecond)

		made := b.calls.Load()
		b.respondWith(hangs(time.Second, down()))

		for range 8 {
			go func() { _ = b.call(time.Minute) }()
		}

		synctest.Wait()

		ferr := failure.Of(b.call(time.Minute))
		if b.calls.Load() != made+1 || !strings.HasSuffix(ferr.Text, "another attempt is in progress") {
			b.Errorf("%d concurrent trials, want 1; other calls fail with %q", b.calls.Load()-made, ferr.Text)
		}

		b.state("the trial is running", upstream.HalfOpen)
		time.Sleep(time.Second)
		synctest.Wait()
		b.state("the trial failed", upstream.Open)

		time.Sleep(pause + time.Millisecond)
		b.respondWith(answers(http.StatusForbidden))

		if err := b.call(time.Minute); err != nil {
			b.Error(err)
		}

		b.state("any response ends the outage", upstream.Closed)
	})
}

func TestNextTrialAfterAHangingOne(t *testing.T) {
	onFakeTime(t, 10, func(b *fixture) {
		b.open()
		time.Sleep(pause + time.Millisecond)
		b.respondWith(hangs(time.Minute, answers(http.StatusOK)))

		slow := make(chan error, 1)

		go func() { slow <- b.call(time.Hour) }()

		time.Sleep(patience + pause + time.Second)
		b.state("patience and pause have passed", upstream.HalfOpen)

		b.respondWith(down())

		made := b.calls.Load()
		if _ = b.call(time.Minute); b.calls.Load() != made+1 {
			b.Error("the next trial was not made")
		}

		if err := <-slow; err != nil {
			b.Errorf("a slow trial was interrupted: %v", err)
		}

		b.state("the slow trial succeeded", upstream.Closed)

		if err := b.call(time.Minute); failure.Of(err).Reason == failure.ReasonSystemUnavailable {
			b.Errorf("calls are rejected: %v", err)
		}
	})
}

func TestCanceledTrialIsRepeated(t *testing.T) {
	onFakeTime(t, 10, func(b *fixture) {
		b.open()
		time.Sleep(pause + time.Millisecond)

		b.respondWith(fails(context.Canceled))
		_ = b.call(time.Minute)

		b.respondWith(answers(http.StatusOK))

		if err := b.call(time.Minute); err != nil {
			b.Error(err)
		}

		b.state("the trial succeeded", upstream.Closed)
	})
}
