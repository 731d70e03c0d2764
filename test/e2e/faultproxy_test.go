//go:build garden

package e2e

import (
	"io"
	"net"
	"sync"
	"testing"
)

// tcpProxy forwards TCP connections to the target. It injects faults where [harness.FaultProxy] cannot, because the clients use
// TLS. A blocked proxy closes all connections and rejects new ones. A held proxy keeps connections open but forwards no data.
type tcpProxy struct {
	listener net.Listener
	target   string
	gate     sync.RWMutex

	mutex   sync.Mutex
	blocked bool
	open    map[net.Conn]bool
}

func newTCPProxy(t *testing.T, target string) *tcpProxy {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	proxy := &tcpProxy{listener: listener, target: target, open: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = listener.Close()

		proxy.block(true)
	})

	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}

			go proxy.forward(connection)
		}
	}()

	return proxy
}

func (p *tcpProxy) address() string { return p.listener.Addr().String() }

// hold stops forwarding in both directions until lift is called.
func (p *tcpProxy) hold() (lift func()) {
	p.gate.Lock()

	return p.gate.Unlock
}

// gatedConn is a connection whose reads block while the gate is locked.
type gatedConn struct {
	net.Conn

	gate *sync.RWMutex
}

func (g gatedConn) Read(into []byte) (int, error) {
	n, err := g.Conn.Read(into)

	g.gate.RLock()
	defer g.gate.RUnlock()

	return n, err
}

func (p *tcpProxy) block(blocked bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	p.blocked = blocked

	for connection := range p.open {
		if blocked {
			_ = connection.Close()
		}
	}
}

// track records an open connection. If the proxy is blocked, track closes the connection and returns false.
func (p *tcpProxy) track(connection net.Conn) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	if p.blocked {
		_ = connection.Close()

		return false
	}

	p.open[connection] = true

	return true
}

func (p *tcpProxy) untrack(connection net.Conn) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	delete(p.open, connection)

	_ = connection.Close()
}

func (p *tcpProxy) forward(from net.Conn) {
	if !p.track(from) {
		return
	}
	defer p.untrack(from)

	to, err := net.Dial("tcp", p.target)
	if err != nil || !p.track(to) {
		return
	}
	defer p.untrack(to)

	go func() {
		_, _ = io.Copy(to, gatedConn{from, &p.gate})
		_ = to.Close()
	}()

	_, _ = io.Copy(from, gatedConn{to, &p.gate})
}
