// Package load sends HTTP requests in a closed loop: each client waits for the response before it sends its next request. The
// load therefore adapts to the server, and latencies include no queue in front of the clients.
//
// A response with an unexpected status ends the load with an error, because failed requests must not count as fast requests.
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

	"golang.org/x/sync/errgroup"
)

// requestTimeout is much longer than any latency that a benchmark accepts.
const requestTimeout = time.Minute

// Request is one request of a load. Requests may share their headers, which the generator does not modify.
type Request struct {
	Method, URL string
	Header      http.Header
	Body        []byte
	// Want is the expected status.
	Want int
}

// Response is the complete response to a request.
type Response struct {
	// Took is the time from sending the request to receiving the last byte of the response. At is the time when that byte
	// arrived.
	Took time.Duration
	At   time.Time
	Body []byte
}

// Generator sends requests from a fixed number of clients, each with a persistent connection. It runs one load at a time, but can
// run several in sequence.
type Generator struct {
	clients int
	client  *http.Client
}

// New returns a generator with the given number of clients. The caller must call Close, which closes its connections.
func New(clients int) *Generator {
	transport := &http.Transport{MaxIdleConns: clients, MaxIdleConnsPerHost: clients, MaxConnsPerHost: clients}

	return &Generator{clients: clients, client: &http.Client{Transport: transport, Timeout: requestTimeout}}
}

// Close closes the connections. No load may be running.
func (g *Generator) Close() { g.client.CloseIdleConnections() }

// Count sends total requests and returns the responses in the order of the requests. It calls request concurrently, with the
// numbers from 0 to total-1.
func (g *Generator) Count(ctx context.Context, total int, request func(number int) Request) ([]Response, error) {
	responses := make([]Response, total)

	err := g.run(ctx, request,
		func(number int) bool { return number < total },
		func(number int, response Response) { responses[number] = response })

	return responses, err
}

// Rate is the result of a load over a period.
type Rate struct {
	// PerSecond is the number of responses per second.
	PerSecond float64
	// Latencies contains the latency of each response, in no particular order.
	Latencies []time.Duration
}

// For sends requests, first for the duration warmUp and then for the duration period. It returns the rate and the latencies of
// the responses that arrived during period. The warm-up opens connections and fills the caches, including those for query plans.
func (g *Generator) For(ctx context.Context, warmUp, period time.Duration, request func(number int) Request) (Rate, error) {
	var (
		rate  Rate
		mutex sync.Mutex
	)

	start := time.Now().Add(warmUp)
	end := start.Add(period)

	err := g.run(ctx, request,
		func(int) bool { return time.Now().Before(end) },
		func(_ int, response Response) {
			if response.At.Before(start) || response.At.After(end) {
				return
			}

			mutex.Lock()
			defer mutex.Unlock()

			rate.Latencies = append(rate.Latencies, response.Took)
		})

	rate.PerSecond = float64(len(rate.Latencies)) / period.Seconds()

	return rate, err
}

// run sends requests until more returns false for the number of the next request. The first error stops all clients.
func (g *Generator) run(ctx context.Context, request func(int) Request, more func(int) bool, received func(int, Response)) error {
	var numbers atomic.Int64

	clients, ctx := errgroup.WithContext(ctx)

	for range g.clients {
		clients.Go(func() error {
			for {
				number := int(numbers.Add(1)) - 1
				if !more(number) {
					return nil
				}

				response, err := g.Send(ctx, request(number))
				if err != nil {
					return err
				}

				received(number, response)
			}
		})
	}

	return clients.Wait()
}

// Send sends one request and reads the response. It returns an error if the response does not have the expected status.
func (g *Generator) Send(ctx context.Context, request Request) (Response, error) {
	sent, err := http.NewRequestWithContext(ctx, request.Method, request.URL, bytes.NewReader(request.Body))
	if err != nil {
		return Response{}, fmt.Errorf("creating a request: %w", err)
	}

	sent.Header = request.Header
	start := time.Now()

	response, err := g.client.Do(sent)
	if err != nil {
		return Response{}, err
	}

	body, err := io.ReadAll(response.Body)
	at := time.Now()

	if err := errors.Join(err, response.Body.Close()); err != nil {
		return Response{}, fmt.Errorf("reading the response of %s: %w", request.URL, err)
	}

	if response.StatusCode != request.Want {
		return Response{}, fmt.Errorf("%s %s: got %s: %s", request.Method, request.URL, response.Status, body)
	}

	return Response{Took: at.Sub(start), At: at, Body: body}, nil
}
