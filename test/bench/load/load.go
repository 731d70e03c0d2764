package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const requestTimeout = time.Minute

// Request is one request of a run.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte
	// Want is the expected status. Any other status ends the run, since failed requests must not count as fast ones.
	Want int
}

// Answer is the response to a request.
type Answer struct {
	// Number is the request's index in the run, starting with 0.
	Number int
	// Took is the time from sending the request to the end of the response, which was at At.
	Took time.Duration
	At   time.Time
	Body []byte
}

// Generator sends requests with a number of clients, each with a persistent connection.
type Generator struct {
	clients int
	client  *http.Client
}

// New returns a generator. Close closes its connections.
func New(clients int) *Generator {
	transport := &http.Transport{MaxIdleConns: clients, MaxIdleConnsPerHost: clients, MaxConnsPerHost: clients}

	return &Generator{clients: clients, client: &http.Client{Transport: transport, Timeout: requestTimeout}}
}

// Close closes the connections.
func (g *Generator) Close() { g.client.CloseIdleConnections() }

// Count sends total requests and returns their responses in the order of their numbers. Clients call request concurrently.
func (g *Generator) Count(ctx context.Context, total int, request func(number int) Request) ([]Answer, error) {
	answers := make([]Answer, total)

	err := g.run(ctx, func(number int) (Request, bool) {
		if number >= total {
			return Request{}, false
		}

		return request(number), true
	}, func(answer Answer) { answers[answer.Number] = answer })

	return answers, err
}

// Rate has the responses within a period.
type Rate struct {
	PerSecond float64
	Latencies []time.Duration
}

// For sends requests for warmUp and while, and returns the responses within while.
func (g *Generator) For(ctx context.Context, warmUp, while time.Duration, request func(number int) Request) (Rate, error) {
	var (
		rate  Rate
		mutex sync.Mutex
	)

	begin := time.Now().Add(warmUp)
	end := begin.Add(while)

	err := g.run(ctx, func(number int) (Request, bool) {
		if !time.Now().Before(end) {
			return Request{}, false
		}

		return request(number), true
	}, func(answer Answer) {
		if answer.At.Before(begin) || answer.At.After(end) {
			return
		}

		mutex.Lock()
		defer mutex.Unlock()

		rate.Latencies = append(rate.Latencies, answer.Took)
	})

	rate.PerSecond = float64(len(rate.Latencies)) / while.Seconds()

	return rate, err
}

// run lets every client send requests until next has no more. The first error stops all clients.
func (g *Generator) run(ctx context.Context, next func(number int) (Request, bool), answered func(Answer)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	var (
		clients sync.WaitGroup
		numbers atomic.Int64
	)

	for range g.clients {
		clients.Go(func() {
			for ctx.Err() == nil {
				number := int(numbers.Add(1)) - 1

				request, more := next(number)
				if !more {
					return
				}

				answer, err := g.Send(ctx, request)
				if err != nil {
					stop(err)

					return
				}

				answer.Number = number
				answered(answer)
			}
		})
	}

	clients.Wait()

	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("sending requests: %w", err)
	}

	return nil
}

// Send sends one request. It fails if the response has another status than the request wants.
func (g *Generator) Send(ctx context.Context, request Request) (Answer, error) {
	sent, err := http.NewRequestWithContext(ctx, request.Method, request.URL, bytes.NewReader(request.Body))
	if err != nil {
		return Answer{}, fmt.Errorf("creating a request: %w", err)
	}

	sent.Header = request.Header
	began := time.Now()

	response, err := g.client.Do(sent)
	if err != nil {
		return Answer{}, err
	}

	body, err := io.ReadAll(response.Body)
	at := time.Now()

	if err := errors.Join(err, response.Body.Close()); err != nil {
		return Answer{}, fmt.Errorf("reading the response of %s: %w", request.URL, err)
	}

	if response.StatusCode != request.Want {
		return Answer{}, fmt.Errorf("%s %s: got %s: %s", request.Method, request.URL, response.Status, body)
	}

	return Answer{Took: at.Sub(began), At: at, Body: body}, nil
}
