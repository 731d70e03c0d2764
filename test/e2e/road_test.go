//go:build garden

package e2e

import (
	"io"
	"net"
	"sync"
	"testing"
)

// tcpRoad leads to an address and can be blocked: then connections are cut, and new ones lead nowhere.
type tcpRoad struct {
	listener net.Listener
	target   string

	mutex   sync.Mutex
	blocked bool
	open    map[net.Conn]bool
}

// newRoad opens a road to the address, for as long as the test runs.
func newRoad(t *testing.T, target string) *tcpRoad {
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

	there, err := net.Dial("tcp", r.target)
	if err != nil || !r.admit(there) {
		return
	}
	defer r.leave(there)

	go func() {
		_, _ = io.Copy(there, connection)
		_ = there.Close()
	}()

	_, _ = io.Copy(connection, there)
}
