package e2e

import (
	"context"
	"sync"

	simulator "github.com/environment-broker/environment-broker/internal/sandbox/fakeagent"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
)

// connector is Director's, until it is told to refuse.
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

// refuse has nobody connect from now on.
func (c *connector) refuse(err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	c.refused = err
}
