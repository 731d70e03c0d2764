package conformance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
)

// Settle has the runtimes whose server keeps its data in the folder listen on a port that nobody's outgoing connection takes while the
// server is away.
func Settle(t *testing.T, dir string) {
	t.Helper()
	port, err := freeport.Draw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "address"), []byte(freeport.Address(port)), 0o600); err != nil {
		t.Fatal(err)
	}
}
