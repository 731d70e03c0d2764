// Package freeport finds ports for servers of tests that are started, ended and started again.
package freeport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const (
	// lowest and highest bound the ports. They lie below those that operating systems give to outgoing connections: one of these could
	// take the port while its server is down. The real garden has those above for itself.
	lowest  = 10000
	highest = 19999
	// draws is how many ports are tried before the search is given up.
	draws = 1000
)

// Draw returns a port of the loopback that nobody listens on at this moment.
func Draw(ctx context.Context) (int, error) {
	var config net.ListenConfig

	for range draws {
		port := lowest + rand.IntN(highest-lowest+1)

		listener, err := config.Listen(ctx, "tcp", Address(port))
		if err != nil {
			continue
		}

		if err := listener.Close(); err != nil {
			return 0, fmt.Errorf("closing port %d: %w", port, err)
		}

		return port, nil
	}

	return 0, fmt.Errorf("none of %d ports that were tried between %d and %d is free", draws, lowest, highest)
}

// Address is that of a port on the loopback.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
