// Package freeport finds ports for servers of tests that are started, ended and started again.
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
	// lowest and highest bound the ports. They lie below those that operating systems give to outgoing connections: one of these could
	// take the port while its server is down. The real garden has those above for itself.
	lowest  = 10000
	highest = 19999
	// block is how many ports a process takes at a time.
	block = 20
	// draws is how many blocks are tried before the search is given up.
	draws = 1000
)

// ours are the ports of this process. A port is nobody's between its draw and the start of its server, and while that is down, so each
// process draws from blocks of its own: it listens on the first port of a block for as long as it lives.
var ours struct { //nolint:gochecknoglobals // which ports are taken is a fact of the process, as its listeners are
	sync.Mutex

	next, end int
	claims    []net.Listener // held, or they would be closed once nothing refers to them
}

// Draw returns a port of the loopback that nobody listens on at this moment, and that no other call returns, in whichever process.
func Draw(ctx context.Context) (int, error) {
	ours.Lock()
	defer ours.Unlock()

	for range draws {
		for ours.next < ours.end {
			port := ours.next
			ours.next++

			if free(ctx, port) {
				return port, nil
			}
		}

		first := lowest + block*rand.IntN((highest-lowest+1)/block)

		claim, err := listen(ctx, first)
		if ctx.Err() != nil {
			return 0, fmt.Errorf("looking for a free port: %w", ctx.Err())
		}

		if err == nil {
			ours.claims = append(ours.claims, claim)
			ours.next, ours.end = first+1, first+block
		}
	}

	return 0, fmt.Errorf("none of the ports between %d and %d that were tried is free", lowest, highest)
}

func free(ctx context.Context, port int) bool {
	listener, err := listen(ctx, port)

	return err == nil && listener.Close() == nil
}

func listen(ctx context.Context, port int) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", Address(port))
	if err != nil {
		return nil, fmt.Errorf("listening on port %d: %w", port, err)
	}

	return listener, nil
}

// Address is that of a port on the loopback.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
