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

// connector is the connector of the fake Director. It rejects connections after refuse.
type connector struct {
	*fakedirector.Director

	mutex   sync.Mutex
	refused error
}

var _ simulator.Connector = (*connector)(nil)

// Connect implements simulator.Connector.
func (c *connector) Connect(ctx context.Context, url, token string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	if c.refused != nil {
		return c.refused
	}

	return c.Director.Connect(ctx, url, token)
}

// refuse rejects connections from now on.
func (c *connector) refuse(err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	c.refused = err
}

// newDirector runs a fake Director, and returns it with the settings of a Provisioner that registers its runtimes there.
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

	return director, provisioner.Director{Enabled: true, URL: server.URL + fakedirector.GraphQLPath, OAuthPath: credentials, Calls: 16}
}
