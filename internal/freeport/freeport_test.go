package freeport_test

import (
	"net"
	"testing"

	"github.com/environment-broker/environment-broker/internal/freeport"
)

func TestDraw(t *testing.T) {
	port, err := freeport.Draw(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if port >= 20000 {
		t.Errorf("port %d is for others", port)
	}

	listener, err := net.Listen("tcp", freeport.Address(port))
	if err != nil {
		t.Fatalf("a port that was drawn cannot be listened on: %v", err)
	}

	if err := listener.Close(); err != nil {
		t.Error(err)
	}
}
