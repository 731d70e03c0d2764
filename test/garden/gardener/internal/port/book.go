package port

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"

	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/atomicfile"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/await"
)

const (
	// lowest and highest bound the ports that are handed out. They lie below those that operating systems give to outgoing
	// connections: one of these could take a port while the garden is down.
	lowest  = 20000
	highest = 29999
	// draws is how many ports are tried before the search is given up.
	draws = 1000
)

// Book knows which port belongs to whom. It is safe for concurrent use.
type Book struct {
	path string

	mu    sync.Mutex
	ports map[string]int
}

// Open reads the book from a file; without the file, the book is empty.
func Open(path string) (*Book, error) {
	book := &Book{path: path, ports: map[string]int{}}
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return book, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ports of the garden: %w", err)
	}
	if err := json.Unmarshal(content, &book.ports); err != nil {
		return nil, fmt.Errorf("read the ports of the garden from %s: %w", path, err)
	}
	return book, nil
}

// Port returns the port that the owner has; a new owner gets one that is free now.
func (b *Book) Port(owner string) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if port, ok := b.ports[owner]; ok {
		return port, nil
	}
	port, err := b.draw()
	if err != nil {
		return 0, fmt.Errorf("find a port for %s: %w", owner, err)
	}
	b.ports[owner] = port
	return port, b.save()
}

// Release forgets an owner.
func (b *Book) Release(owner string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.ports[owner]; !known {
		return nil
	}
	delete(b.ports, owner)
	return b.save()
}

func (b *Book) draw() (int, error) {
	taken := make(map[int]bool, len(b.ports))
	for _, port := range b.ports {
		taken[port] = true
	}
	for range draws {
		port := lowest + rand.IntN(highest-lowest+1)
		if !taken[port] && Free(port) == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("none of %d ports that were tried between %d and %d is free", draws, lowest, highest)
}

func (b *Book) save() error {
	content, err := json.MarshalIndent(b.ports, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the ports of the garden: %w", err)
	}
	return atomicfile.Write(b.path, content)
}

// Address returns the address of a port on the loopback interface.
func Address(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// Free returns nil when a server could listen on the port now.
func Free(port int) error {
	listener, err := net.Listen("tcp4", Address(port))
	if err != nil {
		return err
	}
	return listener.Close()
}

// WaitFree waits until a server can listen on the port: after a garden was killed, its children need a moment to die.
func WaitFree(ctx context.Context, port int) error {
	return await.Until(ctx, Address(port)+" is free", func(context.Context) error { return Free(port) })
}
