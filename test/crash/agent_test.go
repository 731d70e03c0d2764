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

// connecting is how long an agent takes to connect.
const connecting = 3 * time.Second

// agents simulates the agent of the only cluster. It connects when it has a configuration and either no connection or an unused token.
type agents struct {
	mutex      sync.Mutex
	configured agent.Configuration
	present    *agent.Connection
	version    int
	since      time.Time // when the agent started to connect
	spent      map[secret.String]bool
	made       int // connections
}

func newAgents() *agents { return &agents{spent: map[secret.String]bool{}} }

// connection is the state of the agent.
type connection struct {
	// Made counts all connections so far.
	Made  int
	State string
}

func (a *agents) connection() connection {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.work()

	state := connection{Made: a.made}
	if a.present != nil {
		state.State = a.present.State
	}

	return state
}

// work advances the agent to the present time.
func (a *agents) work() {
	if a.version == 0 || time.Since(a.since) < connecting || a.present != nil && a.present.State == agent.Synchronized {
		return
	}

	token := a.configured.Token.Token
	if a.spent[token] {
		a.present = &agent.Connection{ID: "failed", State: agent.ConnectionFailed}

		return
	}

	a.made++
	a.spent[token] = true
	a.present = &agent.Connection{ID: strconv.Itoa(a.made), State: agent.Synchronized}
}

// agentsOf are the agents behind a replica's proxy.
type agentsOf struct {
	*agents

	proxy *crashtest.Proxy
}

// call calls an agent through the proxy.
func (a agentsOf) call(ctx context.Context, name string, do func() error) error {
	err := a.proxy.Call(ctx, name, func(context.Context) error {
		a.mutex.Lock()
		defer a.mutex.Unlock()
		a.work()

		return do()
	})
	if err != nil {
		return failure.Wrap(failure.Transient, err, "the agent does not respond").WithReason(failure.ReasonInternal, failure.ComponentRuntime)
	}

	return nil
}

// Agent implements agent.Clusters.
func (a agentsOf) Agent(ctx context.Context, _ agent.Place) (found agent.Agent, err error) {
	err = a.call(ctx, "Agent", func() error {
		found = agent.Agent{ConfiguredBy: a.configured.WrittenBy, Replaces: a.configured.Replaces, Connection: a.present}
		if a.version > 0 {
			found.Version = strconv.Itoa(a.version)
		}

		return nil
	})

	return found, err
}

// ConfigureAgent implements agent.Clusters.
func (a agentsOf) ConfigureAgent(ctx context.Context, _ agent.Place, configuration agent.Configuration) error {
	return a.call(ctx, "ConfigureAgent", func() error {
		if configuration.Over != "" && configuration.Over != strconv.Itoa(a.version) {
			return errors.New("the Secret has been modified")
		}

		a.configured, a.since = configuration, time.Now()
		a.version++

		return nil
	})
}

// RemoveConnection implements agent.Clusters.
func (a agentsOf) RemoveConnection(ctx context.Context, _ agent.Place, id string) error {
	return a.call(ctx, "RemoveConnection", func() error {
		if a.present != nil && a.present.ID == id {
			a.present, a.since = nil, time.Now()
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
