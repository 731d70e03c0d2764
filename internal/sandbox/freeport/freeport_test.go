package freeport

import "testing"

// many are more than a process takes at a time.
const many = 2*block + 1

func TestDraw(t *testing.T) {
	drawn := map[int]bool{}

	for range many {
		port, err := Draw(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		if port < lowest || port > highest {
			t.Errorf("port %d is for others", port)
		}

		if drawn[port] {
			t.Errorf("port %d was drawn twice", port)
		}

		drawn[port] = true

		listener, err := listen(t.Context(), port)
		if err != nil {
			t.Fatalf("a port that was drawn cannot be listened on: %v", err)
		}

		if err := listener.Close(); err != nil {
			t.Error(err)
		}

		if stranger, err := listen(t.Context(), ours.end-block); err == nil {
			t.Errorf("another process could take the block of port %d for its own", port)
			_ = stranger.Close()
		}
	}
}

func TestDrawPassesOverPortsInUse(t *testing.T) {
	port, err := Draw(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	listener, err := listen(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()

	ours.next = port // as if it were still to be drawn

	if got, err := Draw(t.Context()); err != nil || got == port {
		t.Errorf("port %d is drawn, %v; %d is in use", got, err, port)
	}
}
