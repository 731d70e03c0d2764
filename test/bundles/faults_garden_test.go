//go:build garden

package bundles

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/test/harness"
)

// gate records the points at which the process under test can be killed. A point consists of the name of a call, whether the call
// was received or processed, and a number that distinguishes calls with the same name.
type gate struct {
	mutex  sync.Mutex
	open   bool
	seen   map[string]int
	points []string
	armed  string
	strike func() (alive bool)
	// struck is closed when the armed point is reached, before strike is called.
	struck chan struct{}

	// away makes the target unreachable, and refused counts the attempts to reach it during this time.
	away    atomic.Bool
	refused atomic.Int64
}

func newGate() *gate { return &gate{seen: map[string]int{}, struck: make(chan struct{})} }

// record starts to record points. At the point given in armed, the gate calls strike, which reports whether the call continues.
func (g *gate) record(armed string, strike func() (alive bool)) {
	g.mutex.Lock()
	defer g.mutex.Unlock()

	g.open, g.armed, g.strike = true, armed, strike
}

// disarm makes sure that strike is not called anymore. It reports whether the armed point has occurred.
func (g *gate) disarm() (struck bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()

	g.armed = ""

	select {
	case <-g.struck:
		return true
	default:
		return false
	}
}

// found stops recording and returns the points in the order in which they occurred.
func (g *gate) found() []string {
	g.mutex.Lock()
	defer g.mutex.Unlock()

	g.open = false

	return slices.Clone(g.points)
}

// sofar returns the points in the order in which they occurred, and continues to record.
func (g *gate) sofar() []string {
	g.mutex.Lock()
	defer g.mutex.Unlock()

	return slices.Clone(g.points)
}

// forget returns the points in the order in which they occurred, and starts again without any points.
func (g *gate) forget() []string {
	g.mutex.Lock()
	defer g.mutex.Unlock()

	points := g.points
	g.points, g.seen = nil, map[string]int{}

	return points
}

// receive waits until a channel has a value or is closed. After harness.Patience, it fails the test with a message that lists the
// last points.
func receive[T any](f *fixture, what string, from <-chan T) T {
	f.Helper()

	limit := time.NewTimer(harness.Patience)
	defer limit.Stop()

	select {
	case value := <-from:
		return value
	case <-limit.C:
	}

	const most = 30

	points := f.gate.sofar()
	f.Fatalf("waited %s for %s; the last of %d points are:\n%s", harness.Patience, what, len(points), strings.Join(points[max(0, len(points)-most):], "\n"))

	var none T

	return none
}

// pass records a point. It returns false if the caller was killed at this point.
func (g *gate) pass(name string) bool {
	if !g.matches(name) {
		return true
	}

	return g.strike()
}

// matches records a point, and reports whether it is the armed one.
func (g *gate) matches(name string) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()

	if !g.open {
		return false
	}

	g.seen[name]++
	point := fmt.Sprintf("%s #%d", name, g.seen[name])
	g.points = append(g.points, point)

	if g.armed == "" || point != g.armed {
		return false
	}

	g.armed = ""
	close(g.struck)

	return true
}

// reaches waits until the armed point has occurred or the scenario has ended. It reports whether the point has occurred, because
// the order of concurrent calls varies.
func (f *fixture) reaches(s scenario) (struck bool) {
	f.Helper()

	bundletest.Eventually(f, func() string {
		select {
		case <-f.gate.struck:
			return ""
		default:
			return s.end(f)
		}
	})

	return f.gate.disarm()
}

// errKilled makes the proxy abort a call whose caller was killed.
var errKilled = errors.New("the caller was killed")

// serve runs a TLS proxy until the test ends. name returns the name of a call, or "" if the call has no points. The proxy passes a
// point when it receives a call and, if the call changes something, another point when the server has responded.
func (g *gate) serve(tb testing.TB, to func() *url.URL, transport http.RoundTripper, name func(*http.Request) (call string, changes bool)) *httptest.Server {
	tb.Helper()

	forward := &httputil.ReverseProxy{
		Rewrite:       func(request *httputil.ProxyRequest) { request.SetURL(to()) },
		Transport:     transport,
		FlushInterval: -1,
		ModifyResponse: func(response *http.Response) error {
			if call, changes := name(response.Request); call != "" && changes && !g.pass(call+" processed") {
				return errKilled
			}

			return nil
		},
		// If the server is unreachable, the proxy breaks the connection, as if there were no proxy.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}

	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if call, _ := name(r); call != "" && !g.pass(call+" received") {
			panic(http.ErrAbortHandler)
		}

		forward.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = discarded()
	server.StartTLS()
	tb.Cleanup(func() {
		server.CloseClientConnections() // otherwise, Close would wait for the end of watches
		server.Close()
	})

	return server
}

// cluster runs a proxy in front of an API server. It calls renewed for each renewal of a lease.
func (g *gate) cluster(tb testing.TB, name string, to *cluster, renewed func()) *httptest.Server {
	tb.Helper()

	transport, err := rest.TransportFor(&rest.Config{Host: to.config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: to.config.CAData}})
	if err != nil {
		tb.Fatal(err)
	}

	address, err := url.Parse(to.config.Host)
	if err != nil {
		tb.Fatal(err)
	}

	return g.serve(tb, func() *url.URL { return address }, transport, func(r *http.Request) (string, bool) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/leases/") {
			renewed()
		}

		if to == target && g.away.Load() {
			g.refused.Add(1)
			panic(http.ErrAbortHandler) // breaks the connection
		}

		call, changes := apiCall(r)
		if call == "" {
			return "", false
		}

		return name + " " + call, changes
	})
}

// content runs a load balancer in front of the content servers of the replicas.
func (g *gate) content(tb testing.TB, to func() *url.URL) *httptest.Server {
	tb.Helper()

	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // each bundler has a certificate of its own
	tb.Cleanup(transport.CloseIdleConnections)

	return g.serve(tb, to, transport, func(r *http.Request) (string, bool) {
		if r.Header.Get(observer) != "" {
			return "", false
		}

		return "content " + r.Method, r.Method == http.MethodPut
	})
}

// observer is a header that marks requests from the test itself. They have no points.
const observer = "X-Observer"

// apiCall returns the method and the resource of a request to an API server. For watches and leases, which depend on time, it
// returns "" because they have no points.
func apiCall(r *http.Request) (call string, changes bool) {
	query := r.URL.Query()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")

	switch parts[0] {
	case "api":
		parts = parts[min(2, len(parts)):]
	case "apis":
		parts = parts[min(3, len(parts)):]
	}

	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}

	if query.Get("watch") != "" || len(parts) == 0 || parts[0] == "leases" {
		return "", false
	}

	resource := parts[0]
	if len(parts) > 2 {
		resource += " " + parts[2]
	}

	dry := query.Has("dryRun")
	if dry {
		resource += " dry"
	}

	return r.Method + " " + resource, r.Method != http.MethodGet && !dry
}

// store listens on a socket on which a bundler reports the changes of its store. It returns the path of the socket.
func (g *gate) store(tb testing.TB) string {
	tb.Helper()

	// The path of a socket must be short, but the path of the test's temporary folder contains the name of the test.
	folder, err := os.MkdirTemp("", "store-")
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() { _ = os.RemoveAll(folder) })

	path := filepath.Join(folder, "s")

	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "unix", path)
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() { _ = listener.Close() })

	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}

			go func() {
				defer connection.Close()

				g.pass("store change")
			}()
		}
	}()

	return path
}

// authority returns a server's certificate in PEM format.
func authority(server *httptest.Server) []byte {
	var text bytes.Buffer

	_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}) // a buffer accepts every write

	return text.Bytes()
}
