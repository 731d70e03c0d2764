package postgrestest

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/environment-broker/environment-broker/storage"
)

// Proxy forwards TCP connections to a server, usually to a database. Tests interrupt them with Cut and Freeze. It is safe for
// concurrent use.
type Proxy struct {
	// Port is the port on which the proxy listens.
	Port int

	listener net.Listener
	target   string

	mutex sync.Mutex
	// open is the channel on which writers wait before each write. It is closed while the proxy forwards data, so writers do not
	// block. Freeze replaces it with a new channel, which Thaw closes.
	open chan struct{}
	// cut means that the proxy rejects connections. Cut sets it, and Mend clears it.
	cut bool
	// ends contains both ends of each forwarded connection.
	ends map[net.Conn]bool
	// busy counts the proxy's running goroutines, so that the cleanup of the test can wait for them.
	busy sync.WaitGroup
}

// Through starts a proxy to a database and returns the configuration to connect through it. Other clients of the database are not
// affected.
func Through(tb testing.TB, config storage.Config) (storage.Config, *Proxy) {
	tb.Helper()

	p := NewProxy(tb, net.JoinHostPort(config.Host, config.Port))
	config.Host, config.Port = "127.0.0.1", strconv.Itoa(p.Port)

	return config, p
}

// NewProxy starts a proxy on the loopback interface that forwards to the server, given as host:port. When the test ends, the
// proxy closes all its connections and stops.
func NewProxy(tb testing.TB, server string) *Proxy {
	tb.Helper()

	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}

	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		tb.Fatalf("the proxy listens on %s", listener.Addr())
	}

	p := &Proxy{
		Port: address.Port, listener: listener, target: server, open: make(chan struct{}), ends: map[net.Conn]bool{},
	}
	close(p.open)
	p.busy.Go(p.accept)
	tb.Cleanup(func() {
		_ = listener.Close()

		p.Thaw()
		p.Cut()
		p.busy.Wait()
	})

	return p
}

// Cut closes all connections and rejects new ones until Mend is called. Clients cannot know whether the server has executed a
// statement that was in progress: a commit may have succeeded.
func (p *Proxy) Cut() {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	p.cut = true

	for end := range p.ends {
		_ = end.Close()
	}
}

// Mend accepts new connections again. Connections that Cut closed stay closed.
func (p *Proxy) Mend() {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	p.cut = false
}

// Freeze stops forwarding data but keeps connections open, as if the server had stopped responding or the network lost all
// packets. Unlike with Cut, clients get no error and depend on their timeouts.
func (p *Proxy) Freeze() {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	p.open = make(chan struct{})
}

// Thaw resumes forwarding.
func (p *Proxy) Thaw() {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	select {
	case <-p.open:
	default:
		close(p.open)
	}
}

// accept connects each client to the server until the listener is closed. It closes the client's connection if the proxy is cut
// or the server is unreachable.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}

		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.target)
		if err != nil || !p.register(client, server) {
			_ = client.Close()

			if server != nil {
				_ = server.Close()
			}

			continue
		}

		p.busy.Go(func() { p.forward(client, server) })
		p.busy.Go(func() { p.forward(server, client) })
	}
}

// register registers both ends of a connection. It returns false if the proxy is cut.
func (p *Proxy) register(client, server net.Conn) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	if p.cut {
		return false
	}

	p.ends[client], p.ends[server] = true, true

	return true
}

// forward copies data in one direction until either end is closed, and then closes the receiving end, which ends the other
// direction too. A database thus notices that a client has disconnected and rolls back its transaction.
func (p *Proxy) forward(from, to net.Conn) {
	_, _ = io.Copy(gate{p, to}, from)
	_ = to.Close()

	p.mutex.Lock()
	defer p.mutex.Unlock()

	delete(p.ends, to)
}

// gate is a writer that blocks while the proxy is frozen.
type gate struct {
	proxy *Proxy
	to    net.Conn
}

// Write implements io.Writer.
func (g gate) Write(bytes []byte) (int, error) {
	g.proxy.mutex.Lock()
	open := g.proxy.open
	g.proxy.mutex.Unlock()

	<-open

	return g.to.Write(bytes) //nolint:wrapcheck // io.Copy does not return it
}
