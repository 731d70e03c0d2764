package e2e

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/environment-broker/environment-broker/internal/secret"
	simulator "github.com/environment-broker/environment-broker/internal/simulator/agent"
	"github.com/environment-broker/environment-broker/provisioner/agent"
)

// tokens make tokens as Director does, and take each of them once, as the Connector does.
type tokens struct {
	mutex   sync.Mutex
	issued  map[string]bool
	spent   map[string]bool
	refused error
}

var (
	_ agent.Tokens        = (*tokens)(nil)
	_ simulator.Connector = (*tokens)(nil)
)

func newTokens() *tokens { return &tokens{issued: map[string]bool{}, spent: map[string]bool{}} }

// OneTimeToken implements agent.Tokens.
func (t *tokens) OneTimeToken(_ context.Context, _, runtimeID string) (agent.Token, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()

	token := "token " + strconv.Itoa(len(t.issued)) + " of " + runtimeID
	t.issued[token] = true

	return agent.Token{Token: secret.String(token), ConnectorURL: "https://connector.example.com"}, nil
}

// Connect implements simulator.Connector.
func (t *tokens) Connect(_ context.Context, url, token string) error {
	t.mutex.Lock()
	defer t.mutex.Unlock()

	switch {
	case t.refused != nil:
		return t.refused
	case url != "https://connector.example.com" || !t.issued[token] || t.spent[token]:
		return errors.New("the token is not good, or not any more")
	}

	t.spent[token] = true

	return nil
}

// Synchronize implements simulator.Connector.
func (t *tokens) Synchronize(context.Context, string) error { return nil }

// refuse has nobody connect from now on.
func (t *tokens) refuse(err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()

	t.refused = err
}

func (t *tokens) count() (issued, spent int) {
	t.mutex.Lock()
	defer t.mutex.Unlock()

	return len(t.issued), len(t.spent)
}
