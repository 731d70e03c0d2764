package fakedirector

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"
)

// oneTimeLifetime is how long a token for an agent may be used.
const oneTimeLifetime = time.Hour

// OneTimeToken lets an agent connect once.
type OneTimeToken struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expiresAt"`
	Spent     bool      `json:"spent"`
}

func (d *Director) oneTimeToken(runtime *Runtime, id string) (any, error) {
	if runtime == nil {
		return nil, unknown(id)
	}

	given := OneTimeToken{Token: rand.Text() + rand.Text(), ExpiresAt: d.options.Now().Add(oneTimeLifetime)}
	runtime.OneTimeTokens = append(runtime.OneTimeTokens, given)

	return map[string]any{
		"token": given.Token, "connectorURL": d.options.ConnectorURL, "used": false, "expiresAt": given.ExpiresAt.UTC().Format(time.RFC3339),
	}, d.store()
}

// Connect plays the Connector, to which simulated agents bring their tokens. Each token is good once, and for an hour.
func (d *Director) Connect(_ context.Context, url, token string) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	if url != d.options.ConnectorURL {
		return errors.New("nobody answers at the Connector's address " + url)
	}

	for _, runtime := range d.runtimes {
		found := slices.IndexFunc(runtime.OneTimeTokens, func(each OneTimeToken) bool { return each.Token == token })
		if found < 0 {
			continue
		}

		known := &runtime.OneTimeTokens[found]
		if known.Spent || d.options.Now().After(known.ExpiresAt) {
			break
		}

		known.Spent = true

		return d.store()
	}

	return errors.New("the token is not good, or not any more")
}

// Synchronize is what connected agents do. Director has no applications for them.
func (*Director) Synchronize(context.Context) error { return nil }
