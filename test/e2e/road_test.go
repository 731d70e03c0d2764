//go:build garden

package e2e

import (
	"io"
	"net"
	"sync"
	"testing"
)

// tcpRoad leads to an address. It can be blocked: then connections are cut, and new ones lead nowhere. And it can be held: then nothing
// arrives, and nobody is told.
type tcpRoad struct {
	listener net.Listener
	// target is where a new connection leads to, or empty.
	target func() string
	gate   sync.RWMutex

	mutex   sync.Mutex
	blocked bool
	open    map[net.Conn]bool
}

// newRoad opens a road to where the function says at that moment, for as long as the test runs.
func newRoad(t *testing.T, target func() string) *tcpRoad {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	road := &tcpRoad{listener: listener, target: target, open: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = listener.Close()

		road.block(true)
	})

	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}

			go road.lead(connection)
		}
	}()

	return road
}

func (r *tcpRoad) address() string { return r.listener.Addr().String() }

// hold keeps what is sent from arriving until the returned function is called.
func (r *tcpRoad) hold() (release func()) {
	r.gate.Lock()

	return r.gate.Unlock
}

// gated is a connection whose bytes arrive when the gate is open.
type gated struct {
	net.Conn

	gate *sync.RWMutex
}

func (g gated) Read(into []byte) (int, error) {
	n, err := g.Conn.Read(into)

	g.gate.RLock()
	defer g.gate.RUnlock()

	return n, err
}

func (r *tcpRoad) block(blocked bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()

	r.blocked = blocked

	for connection := range r.open {
		if blocked {
			_ = connection.Close()
		}
	}
}

// admit takes note of a connection, or closes it.
func (r *tcpRoad) admit(connection net.Conn) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()

	if r.blocked {
		_ = connection.Close()

		return false
	}

	r.open[connection] = true

	return true
}

func (r *tcpRoad) leave(connection net.Conn) {
	r.mutex.Lock()
	defer r.mutex.Unlock()

	delete(r.open, connection)

	_ = connection.Close()
}

func (r *tcpRoad) lead(connection net.Conn) {
	if !r.admit(connection) {
		return
	}
	defer r.leave(connection)

	there, err := net.Dial("tcp", r.target())
	if err != nil || !r.admit(there) {
		return
	}
	defer r.leave(there)

	go func() {
		_, _ = io.Copy(there, gated{connection, &r.gate})
		_ = there.Close()
	}()

	_, _ = io.Copy(connection, gated{there, &r.gate})
}
