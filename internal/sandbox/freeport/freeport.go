// Package freeport finds free ports for test servers that must restart at the same address.
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
	// minPort and maxPort are below the ephemeral port range: an outgoing connection could otherwise use a port while its server is
	// down. The local garden uses the ports between maxPort and that range.
	minPort = 10000
	maxPort = 19999
	// block is the number of ports that a process reserves at a time.
	block = 20
	// attempts is the number of blocks that Draw tries.
	attempts = 1000
)

// claimed holds the ports that this process reserved. Nothing listens on a drawn port until its server starts, or while the
// server is down, so another process could draw the same port. Each process therefore reserves whole blocks: it listens on the
// first port of a block until it exits.
var claimed struct { //nolint:gochecknoglobals // listeners belong to the process
	sync.Mutex

	next, end int
	listeners []net.Listener // keeps listeners open: unreferenced ones are closed by the garbage collector
}

// Draw returns a free loopback port. While this process runs, no other call to Draw returns the port, neither in this process nor
// in another one.
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

// Check returns an error if a server cannot listen on the port now. Another program can still take the port before the server
// starts. A port from Draw is at least safe from other users of this package.
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

// Address returns the loopback address of a port, such as 127.0.0.1:10001. It is an IPv4 address, because containers may lack
// IPv6.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
