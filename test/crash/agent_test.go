package crash

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process/crashtest"
	"github.com/environment-broker/environment-broker/provisioner/agent"
	"github.com/environment-broker/environment-broker/provisioner/orders"
)

// connectTime is the time from the agent's configuration or disconnection until the agent has connected.
const connectTime = 3 * time.Second

// agents simulates the runtime agent of the only cluster. Once it is configured, the agent connects if it has no connection or if
// it has a token that it has not used yet.
type agents struct {
	mutex           sync.Mutex
	configured      agent.Configuration
	current         *agent.Connection
	version         int
	connectingSince time.Time // zero before the agent is configured
	spentTokens     map[secret.String]bool
	connections     int // number of connections so far
}

func newAgents() *agents { return &agents{spentTokens: map[secret.String]bool{}} }

// agentConnection is the state of the agent's connection.
type agentConnection struct {
	// Count is the number of connections that the agent has made so far.
	Count int
	State string
}

func (a *agents) connection() agentConnection {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.advance()

	state := agentConnection{Count: a.connections}
	if a.current != nil {
		state.State = a.current.State
	}

	return state
}

// advance connects the agent if connectTime has passed since its last configuration or disconnection. The connection fails if the
// agent has already used its token. The caller holds the mutex.
func (a *agents) advance() {
	if a.version == 0 || time.Since(a.connectingSince) < connectTime || a.current != nil && a.current.State == agent.Synchronized {
		return
	}

	token := a.configured.Token.Token
	if a.spentTokens[token] {
		a.current = &agent.Connection{ID: "failed", State: agent.ConnectionFailed}

		return
	}

	a.connections++
	a.spentTokens[token] = true
	a.current = &agent.Connection{ID: strconv.Itoa(a.connections), State: agent.Synchronized}
}

// proxiedAgents accesses the agent through the proxy of a replica.
type proxiedAgents struct {
	*agents

	proxy *crashtest.Proxy
}

// call calls the agent through the proxy. It returns an injected fault as a transient failure of the runtime.
func (a proxiedAgents) call(ctx context.Context, name string, do func() error) error {
	err := a.proxy.Call(ctx, name, func(context.Context) error {
		a.mutex.Lock()
		defer a.mutex.Unlock()
		a.advance()

		return do()
	})
	if err != nil {
		return failure.Wrap(failure.Transient, err, "the agent does not respond").WithReason(failure.ReasonInternal, failure.ComponentRuntime)
	}

	return nil
}

// Agent implements agent.Clusters.
func (a proxiedAgents) Agent(ctx context.Context, _ agent.Place) (found agent.Agent, err error) {
	err = a.call(ctx, "Agent", func() error {
		found = agent.Agent{ConfiguredBy: a.configured.WrittenBy, Replaces: a.configured.Replaces, Connection: a.current}
		if a.version > 0 {
			found.Version = strconv.Itoa(a.version)
		}

		return nil
	})

	return found, err
}

// ConfigureAgent implements agent.Clusters.
func (a proxiedAgents) ConfigureAgent(ctx context.Context, _ agent.Place, configuration agent.Configuration) error {
	return a.call(ctx, "ConfigureAgent", func() error {
		if configuration.Over != "" && configuration.Over != strconv.Itoa(a.version) {
			return errors.New("the Secret has been modified")
		}

		a.configured, a.connectingSince = configuration, time.Now()
		a.version++

		return nil
	})
}

// RemoveConnection implements agent.Clusters.
func (a proxiedAgents) RemoveConnection(ctx context.Context, _ agent.Place, id string) error {
	return a.call(ctx, "RemoveConnection", func() error {
		if a.current != nil && a.current.ID == id {
			a.current, a.connectingSince = nil, time.Now()
		}

		return nil
	})
}

func (p *provisioner) reconnect(runtimeID string) string {
	p.Helper()

	id, err := p.service.ReconnectAgent(p.Context(), orders.Caller{Tenant: "tenant", IdempotencyKey: "reconnection"}, runtimeID)
	if err != nil {
		p.Fatal(err)
	}

	return id
}
