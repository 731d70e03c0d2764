package freeport

import "testing"

// many is so large that a process must reserve more than two blocks of ports.
const many = 2*block + 1

func TestDraw(t *testing.T) {
	drawn := map[int]bool{}

	for range many {
		port, err := Draw(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		if port < minPort || port > maxPort {
			t.Errorf("port %d is out of range", port)
		}

		if drawn[port] {
			t.Errorf("port %d was drawn twice", port)
		}

		drawn[port] = true

		listener, err := listen(t.Context(), port)
		if err != nil {
			t.Fatalf("listening on a drawn port: %v", err)
		}

		if err := listener.Close(); err != nil {
			t.Error(err)
		}

		if other, err := listen(t.Context(), claimed.end-block); err == nil {
			t.Errorf("another process can reserve the block of port %d", port)
			_ = other.Close()
		}
	}
}

func TestDrawSkipsPortsInUse(t *testing.T) {
	port, err := Draw(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	listener, err := listen(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()

	claimed.next = port // make Draw try this port again

	if got, err := Draw(t.Context()); err != nil || got == port {
		t.Errorf("got port %d, %v although port %d is in use", got, err, port)
	}
}
