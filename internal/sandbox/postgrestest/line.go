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

// Line leads connections to a database, until it is cut or goes dead.
type Line struct {
	listener net.Listener
	target   string

	mutex sync.Mutex
	// open is closed while bytes may pass.
	open chan struct{}
	away bool
	ends map[net.Conn]bool
	busy sync.WaitGroup
}

// Through returns the configuration of the same database, reached through a new line.
func Through(tb testing.TB, config storage.Config) (storage.Config, *Line) {
	tb.Helper()

	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}

	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		tb.Fatalf("the line listens on %s", listener.Addr())
	}

	l := &Line{
		listener: listener, target: net.JoinHostPort(config.Host, strconv.Itoa(config.Port)),
		open: make(chan struct{}), ends: map[net.Conn]bool{},
	}
	close(l.open)
	l.busy.Go(l.accept)
	tb.Cleanup(func() {
		_ = listener.Close()

		l.Thaw()
		l.Cut()
		l.busy.Wait()
	})

	config.Host, config.Port = "127.0.0.1", address.Port

	return config, l
}

// Cut ends every connection. New ones are refused until Mend.
func (l *Line) Cut() {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	l.away = true

	for end := range l.ends {
		_ = end.Close()
	}
}

// Mend lets new connections through again.
func (l *Line) Mend() {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	l.away = false
}

// Freeze lets no byte pass and ends no connection: as if the server were frozen, or the network lost every packet.
func (l *Line) Freeze() {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	l.open = make(chan struct{})
}

// Thaw lets bytes pass again.
func (l *Line) Thaw() {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	select {
	case <-l.open:
	default:
		close(l.open)
	}
}

func (l *Line) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}

		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", l.target)
		if err != nil || !l.keep(client, server) {
			_ = client.Close()

			if server != nil {
				_ = server.Close()
			}

			continue
		}

		l.busy.Go(func() { l.lead(client, server) })
		l.busy.Go(func() { l.lead(server, client) })
	}
}

// keep remembers the ends of a connection, unless the line is cut.
func (l *Line) keep(client, server net.Conn) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	if l.away {
		return false
	}

	l.ends[client], l.ends[server] = true, true

	return true
}

// lead passes bytes on, as far as the line lets them.
func (l *Line) lead(from, to net.Conn) {
	_, _ = io.Copy(gate{l, to}, from)
	_ = to.Close()

	l.mutex.Lock()
	defer l.mutex.Unlock()

	delete(l.ends, to)
}

// gate writes when the line is open.
type gate struct {
	line *Line
	to   net.Conn
}

func (g gate) Write(bytes []byte) (int, error) {
	g.line.mutex.Lock()
	open := g.line.open
	g.line.mutex.Unlock()

	<-open

	return g.to.Write(bytes) //nolint:wrapcheck // io.Copy drops it
}
