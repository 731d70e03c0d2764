package e2e

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	provisioner "github.com/environment-broker/environment-broker/provisioner/service"

	simulator "github.com/environment-broker/environment-broker/internal/sandbox/fakeagent"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
)

// connector is the connector of the fake Director. After reject is called, it rejects all connections.
type connector struct {
	*fakedirector.Director

	mutex     sync.Mutex
	rejection error
}

var _ simulator.Connector = (*connector)(nil)

// Connect implements simulator.Connector.
func (c *connector) Connect(ctx context.Context, url, token string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	if c.rejection != nil {
		return c.rejection
	}

	return c.Director.Connect(ctx, url, token)
}

func (c *connector) reject(err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	c.rejection = err
}

// newDirector runs a fake Director. It also returns the settings that make a Provisioner register its runtimes in this
// Director.
func newDirector(t *testing.T) (*fakedirector.Director, provisioner.Director) {
	t.Helper()

	director, err := fakedirector.New(fakedirector.Options{})
	if err != nil {
		t.Fatal(err)
	}

	server := httptest.NewServer(director)
	t.Cleanup(server.Close)

	credentials := filepath.Join(t.TempDir(), "director.yaml")
	text := fmt.Sprintf("data: {client_id: %s, client_secret: %s, tokens_endpoint: %q}",
		fakedirector.DefaultClientID, fakedirector.DefaultClientSecret, server.URL+fakedirector.TokenPath)

	if err := os.WriteFile(credentials, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	settings := provisioner.DefaultConfig().Director
	settings.Enabled, settings.URL, settings.OAuthPath = true, server.URL+fakedirector.GraphQLPath, credentials

	return director, settings
}
