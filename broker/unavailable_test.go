package broker_test

import (
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/environment-broker/environment-broker/internal/postgrestest"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// wire leads connections to a server until it is cut.
type wire struct {
	listener net.Listener

	mutex sync.Mutex
	ends  []net.Conn
	busy  sync.WaitGroup
}

func newWire(t *testing.T, target string) *wire {
	t.Helper()

	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	w := &wire{listener: listener}
	w.busy.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}

			server, err := new(net.Dialer).DialContext(t.Context(), "tcp", target)
			if err != nil {
				_ = client.Close()

				continue
			}

			w.mutex.Lock()
			w.ends = append(w.ends, client, server)
			w.mutex.Unlock()

			w.busy.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
			w.busy.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
		}
	})
	t.Cleanup(w.cut)

	return w
}

// cut ends every connection and refuses new ones.
func (w *wire) cut() {
	_ = w.listener.Close()

	w.mutex.Lock()
	for _, end := range w.ends {
		_ = end.Close()
	}
	w.mutex.Unlock()

	w.busy.Wait()
}

func TestA16A21WithoutItsDatabaseTheBrokerAsksForPatience(t *testing.T) {
	config := postgrestest.Database(t)
	line := newWire(t, net.JoinHostPort(config.Host, strconv.Itoa(config.Port)))

	config.Host = "127.0.0.1"
	config.Port = line.listener.Addr().(*net.TCPAddr).Port

	b := benchOn(t, storagetest.Open(t, config))
	b.provisioned(instanceID)
	line.cut()

	b.faulty = true

	for _, call := range []call{
		{method: "PUT", path: path("new") + "?accepts_incomplete=true", body: order()},
		{method: "GET", path: path(instanceID)},
		{method: "GET", path: path(instanceID) + "/last_operation"},
		{method: "DELETE", path: path(instanceID) + "?accepts_incomplete=true" + ids},
	} {
		got := b.want("the same request may succeed later: "+call.method+" "+call.path, b.do(call), 503)
		if got.Header.Get("Retry-After") == "" {
			b.Errorf("%s %s: it is not told when", call.method, call.path)
		}
	}

	b.want("the catalog needs no database", b.do(call{method: "GET", path: "/v2/catalog"}), 200)
}
