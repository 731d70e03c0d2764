// Package freeport finds ports for servers of tests that are started, stopped and started again at the same address.
package freeport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

const (
	// minPort and maxPort are below the ports of outgoing connections, which could take a port while its server is down. The
	// local garden has the ports above for itself.
	minPort = 10000
	maxPort = 19999
	// block is the number of ports that a process claims at a time.
	block = 20
	// attempts is the number of blocks that are tried.
	attempts = 1000
)

// claimed has the ports of this process. A port is unused between its draw and the start of its server, and while the server is
// down, so each process draws from blocks of its own: it listens on the first port of a block as long as it lives.
var claimed struct { //nolint:gochecknoglobals // listeners belong to the process
	sync.Mutex

	next, end int
	listeners []net.Listener // referenced, or the runtime closes them
}

// Draw returns a port of the loopback that is free now and that no other call returns, in this process or another one.
func Draw(ctx context.Context) (int, error) {
	claimed.Lock()
	defer claimed.Unlock()
	for range attempts {
		for claimed.next < claimed.end {
			port := claimed.next
			claimed.next++
			if Check(ctx, port) == nil {
				return port, nil
			}
		}
		first := minPort + block*rand.IntN((maxPort-minPort+1)/block)
		listener, err := listen(ctx, first)
		if ctx.Err() != nil {
			return 0, fmt.Errorf("looking for a free port: %w", ctx.Err())
		}
		if err == nil {
			claimed.listeners = append(claimed.listeners, listener)
			claimed.next, claimed.end = first+1, first+block
		}
	}
	return 0, fmt.Errorf("no port between %d and %d is free", minPort, maxPort)
}

// Check returns an error if a server cannot listen on the port now. Another process may still take the port before the server
// starts; ports from Draw are safe from other users of this package.
func Check(ctx context.Context, port int) error {
	listener, err := listen(ctx, port)
	if err != nil {
		return err
	}
	return listener.Close()
}

func listen(ctx context.Context, port int) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", Address(port))
	if err != nil {
		return nil, fmt.Errorf("listening on port %d: %w", port, err)
	}
	return listener, nil
}

// Address returns the address of a port on the loopback, such as 127.0.0.1:10001. IPv6 is not used: containers may lack it.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
