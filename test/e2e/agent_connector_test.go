package e2e

import (
	"context"
	"errors"
	"slices"
	"sync"

	simulator "github.com/environment-broker/environment-broker/internal/simulator/agent"
	"github.com/environment-broker/environment-broker/internal/simulator/director"
)

const connectorURL = "https://connector.example.com"

// connector takes each of Director's tokens once.
type connector struct {
	director *director.Director

	mutex   sync.Mutex
	spent   map[string]bool
	refused error
}

var _ simulator.Connector = (*connector)(nil)

// Connect implements simulator.Connector.
func (c *connector) Connect(_ context.Context, url, token string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	known := slices.ContainsFunc(c.director.Runtimes(), func(each director.Runtime) bool { return slices.Contains(each.OneTimeTokens, token) })

	switch {
	case c.refused != nil:
		return c.refused
	case url != connectorURL || !known || c.spent[token]:
		return errors.New("the token is not good, or not any more")
	}

	c.spent[token] = true

	return nil
}

// Synchronize implements simulator.Connector.
func (*connector) Synchronize(context.Context, string) error { return nil }

// refuse has nobody connect from now on.
func (c *connector) refuse(err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	c.refused = err
}

// count is how many tokens are spent.
func (c *connector) count() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	return len(c.spent)
}
