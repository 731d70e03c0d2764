package httpserver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipes is a listener with in-memory connections, which work with the fake time of synctest.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accepted:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
		return net.ErrClosed
	default:
		close(p.closed)

		return nil
	}
}

func (*pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

func (p *pipes) dial(t *testing.T) net.Conn {
	t.Helper()

	ours, theirs := net.Pipe()
	p.accepted <- theirs

	t.Cleanup(func() { _ = ours.Close() })

	return ours
}

type running struct {
	*testing.T

	pipes *pipes
	stop  context.CancelFunc
	ended chan error
}

func serve(t *testing.T, handler http.Handler, test func(r running)) {
	t.Helper()
	serveWithDelay(t, handler, 0, test)
}

func serveWithDelay(t *testing.T, handler http.Handler, delay time.Duration, test func(r running)) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) {
		server, err := Listen(t.Context(), "127.0.0.1:0", handler, delay)
		if err != nil {
			t.Fatal(err)
		}

		if err := server.Close(); err != nil {
			t.Fatal(err)
		}

		ctx, stop := context.WithCancel(t.Context())
		r := running{
			T: t, stop: stop, ended: make(chan error, 1),
			pipes: &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})},
		}
		server.listener = r.pipes

		go func() { r.ended <- server.Run(ctx) }()

		test(r)
	})
}

func (r running) send(text string) *bufio.Reader {
	r.Helper()

	conn := r.pipes.dial(r.T)

	go func() { _, _ = io.WriteString(conn, text) }()

	return bufio.NewReader(conn)
}

type result struct {
	status int
	body   string
	err    error
	after  time.Duration
}

// ask sends the text as a request on a new connection, and reads the response in the background.
func (r running) ask(text string) <-chan result {
	r.Helper()

	began, reader, got := time.Now(), r.send(text), make(chan result, 1)

	go func() {
		var read result

		response, err := http.ReadResponse(reader, nil)
		if read.err = err; err == nil {
			text, err := io.ReadAll(response.Body)
			read.status, read.body, read.err = response.StatusCode, string(text), errors.Join(err, response.Body.Close())
		}

		read.after = time.Since(began)
		got <- read
	}()

	synctest.Wait() // the request is in progress

	return got
}

func (r running) end() (time.Duration, error) {
	r.Helper()

	began := time.Now()

	r.stop()

	err := <-r.ended

	return time.Since(began), err
}

const get = "GET / HTTP/1.1\r\nHost: here\r\n\r\n"

func TestStop(t *testing.T) {
	const grain = time.Second // the server polls for idle connections at growing intervals

	cases := map[string]struct {
		reason   string
		handle   http.HandlerFunc
		wantBody string
		wantTook time.Duration
		wantErr  string
	}{
		"idle": {
			reason: "no request is in progress", wantBody: "done",
			handle: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") },
		},
		"request in progress": {
			reason: "a request in progress is completed", wantBody: "done", wantTook: 4 * time.Second,
			handle: func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(4 * time.Second) // fake time

				_, _ = io.WriteString(w, "done")
			},
		},
		"long poll": {
			reason: "a long poll notices the stop immediately and responds", wantBody: "nothing new",
			handle: func(w http.ResponseWriter, r *http.Request) {
				<-Draining(r.Context())

				_, _ = io.WriteString(w, "nothing new")
			},
		},
		"long work": {
			reason: "the context of a slow handler ends in time for a response", wantBody: "nothing new", wantTook: 5 * time.Second,
			handle: func(w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()

				_, _ = io.WriteString(w, "nothing new")
			},
		},
		"stuck handler": {
			reason: "the duration of the stop is bounded", wantErr: "deadline exceeded", wantTook: 10 * time.Second,
			handle: func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Second) }, // fake time
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			serve(t, c.handle, func(r running) {
				got := r.ask(get)

				took, err := r.end()
				if took < c.wantTook || took > c.wantTook+grain {
					r.Errorf("%s: the stop took %s, want %s", c.reason, took, c.wantTook)
				}

				if (err == nil) != (c.wantErr == "") || (err != nil && !strings.Contains(err.Error(), c.wantErr)) {
					r.Errorf("%s: the stop returns %v, want %q", c.reason, err, c.wantErr)
				}

				if response := <-got; c.wantErr == "" && (response.err != nil || response.body != c.wantBody) {
					r.Errorf("%s: the response is %q, %v", c.reason, response.body, response.err)
				}

				if _, err := r.pipes.Accept(); !errors.Is(err, net.ErrClosed) {
					r.Errorf("%s: the address is still bound: %v", c.reason, err)
				}

				time.Sleep(time.Minute) // fake time, in which the remaining goroutines end, as synctest requires
			})
		})
	}
}

func TestStopClosesIdleAndUnusedConnections(t *testing.T) {
	cases := map[string]struct {
		reason string
		use    func(r running)
		within time.Duration
	}{
		"idle": {
			reason: "its last response was read", within: 0,
			use: func(r running) {
				if response := <-r.ask(get); response.status != http.StatusNotFound {
					r.Errorf("the response is %d, %v", response.status, response.err)
				}
			},
		},
		"unused": {
			reason: "clients open connections in advance", within: time.Second,
			use: func(r running) { r.pipes.dial(r.T) },
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			serve(t, http.NotFoundHandler(), func(r running) {
				c.use(r)
				synctest.Wait()

				if took, err := r.end(); err != nil || took > c.within {
					r.Errorf("%s: the stop took %s, want at most %s; error %v", c.reason, took, c.within, err)
				}
			})
		})
	}
}

func TestServerHandlesRequestsDuringTheDelay(t *testing.T) {
	const delay = 3 * time.Second

	serveWithDelay(t, http.NotFoundHandler(), delay, func(r running) {
		request := strings.Replace(get, "GET", "HEAD", 1)

		before, err := http.ReadResponse(r.send(request), nil)
		if err != nil || before.Close {
			r.Fatalf("got %+v, %v, want a response that keeps the connection open", before, err)
		}

		r.stop()
		time.Sleep(delay - time.Second) // fake time

		during, err := http.ReadResponse(r.send(request), nil)
		if err != nil || !during.Close {
			r.Fatalf("got %+v, %v, want a response that closes the connection", during, err)
		}

		select {
		case err := <-r.ended:
			r.Fatalf("the server ended before its delay was over: %v", err)
		default:
		}

		if took, err := r.end(); err != nil || took != time.Second {
			r.Errorf("the stop took another %s, want the rest of the delay; error %v", took, err)
		}
	})
}

func TestDrainingOutsideOfAServer(t *testing.T) {
	if Draining(t.Context()) != nil {
		t.Error("Draining returns a channel outside of a server")
	}
}

func TestLimits(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestTimeout)

			return
		}

		_, _ = w.Write(text)
	}

	cases := map[string]struct {
		reason     string
		handle     http.HandlerFunc
		request    string
		wantStatus int // 0: the connection is closed without a response
		wantAfter  time.Duration
	}{
		"slow header": {
			reason: "an incomplete request must not block a connection forever",
			handle: echo, request: strings.TrimSuffix(get, "\r\n"), wantAfter: 10 * time.Second,
		},
		"slow body": {
			reason: "an incomplete body must not block a handler forever",
			handle: echo, request: "POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\nhalf",
			wantStatus: http.StatusRequestTimeout, wantAfter: 30 * time.Second,
		},
		"long header": {
			reason: "headers are read before authentication, so they are bounded",
			handle: echo, request: "GET / HTTP/1.1\r\nHost: here\r\nX-Long: " + strings.Repeat("x", 80<<10) + "\r\n\r\n",
			wantStatus: http.StatusRequestHeaderFieldsTooLarge,
		},
		"header of a usual size": {
			reason: "tokens and contexts of platforms must fit into a header",
			handle: echo, request: "GET / HTTP/1.1\r\nHost: here\r\nX-Long: " + strings.Repeat("x", 48<<10) + "\r\n\r\n",
			wantStatus: http.StatusOK,
		},
		"long poll": {
			reason:  "the longest poll must not time out",
			handle:  func(http.ResponseWriter, *http.Request) { time.Sleep(40 * time.Second) }, // fake time
			request: get, wantStatus: http.StatusOK, wantAfter: 40 * time.Second,
		},
		"slow response": {
			reason: "an unread response must not block a handler forever",
			handle: func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(61 * time.Second) // fake time

				_, _ = io.WriteString(w, "late")
			},
			request: get, wantAfter: 61 * time.Second,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			serve(t, c.handle, func(r running) {
				got := <-r.ask(c.request)
				if got.status != c.wantStatus || got.after < c.wantAfter || got.after > c.wantAfter+time.Second {
					r.Errorf("%s: status %d after %s (%v), want %d after %s",
						c.reason, got.status, got.after, got.err, c.wantStatus, c.wantAfter)
				}

				if _, err := r.end(); err != nil {
					r.Error(err)
				}
			})
		})
	}
}

func TestIdleConnectionIsClosed(t *testing.T) {
	serve(t, http.NotFoundHandler(), func(r running) {
		reader := r.send(get)

		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			r.Fatal(err)
		}

		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			r.Error(err)
		}

		if err := response.Body.Close(); err != nil {
			r.Error(err)
		}

		began := time.Now()

		_, err = reader.ReadByte()
		if idle := time.Since(began); !errors.Is(err, io.EOF) || idle != 2*time.Minute {
			r.Errorf("an idle connection returns %v after %s, want EOF after 2m", err, idle)
		}

		if _, err := r.end(); err != nil {
			r.Error(err)
		}
	})
}

func TestListen(t *testing.T) {
	server, err := Listen(t.Context(), "127.0.0.1:0", http.NotFoundHandler(), 0)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := Listen(t.Context(), server.Address(), nil, 0); err == nil || !strings.Contains(err.Error(), server.Address()) {
		t.Errorf("listening on a bound address returns %v, want an error with the address", err)
	}

	for range 2 { // a service that failed to start closes servers that may have stopped already
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}

	if err := server.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "serving "+server.Address()) {
		t.Errorf("a closed server can run: %v", err)
	}
}
