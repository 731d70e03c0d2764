package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

func TestStages(t *testing.T) {
	f := &fixture{}
	reconnect := Reconnect(f.options())

	if err := reconnect.Validate(); err != nil {
		t.Error(err)
	}

	if diff := cmp.Diff([]string{"ConnectRuntimeAgent", "WaitForAgentToConnect"}, reconnect.StageNames()); diff != "" {
		t.Errorf("running operations refer to stages by name, so names must not change, -want +got:\n%s", diff)
	}

	if got := Stages(f.options()); len(got) != len(reconnect.Stages) {
		t.Errorf("a provisioning uses the same stages, got %d", len(got))
	}

	for _, stage := range Stages(f.options()) {
		for _, registered := range []bool{false, true} {
			op := process.NewOperation(process.Record{}, operation.Data{Registered: registered}, time.Time{})
			if got := stage.Steps[0].When.Met(op); got != registered {
				t.Errorf("%s runs: %t, for a runtime registered in Director: %t", stage.Name, got, registered)
			}
		}
	}

	followed := f.options()
	followed.Connected = []process.Stage[operation.Data]{{Name: "TellingConnection"}}

	if names := Reconnect(followed).StageNames(); names[len(names)-1] != "TellingConnection" {
		t.Errorf("the stage after the connection is not the last one: %v", names)
	}

	without := f.options()
	without.Tokens = nil

	if got := Stages(without); got != nil {
		t.Errorf("without Director a provisioning has no agent stages, got %d", len(got))
	}

	if err := Reconnect(without).Validate(); err != nil {
		t.Errorf("operations that were accepted with Director have no process: %v", err)
	}
}

func TestFirstConnection(t *testing.T) {
	f := &fixture{}

	for range 2 {
		if op, wait, err := f.run(t, "ConnectRuntimeAgent", "op-1"); err != nil || wait != 0 || !op.Data.Registered {
			t.Fatalf("next attempt after %s, known to Director: %t, %v", wait, op.Data.Registered, err)
		}
	}

	want := []Configuration{{
		Token: Token{Token: "token-1", ConnectorURL: "https://connector.example.com"}, RuntimeID: runtimeID, Tenant: "tenant", WrittenBy: "op-1",
	}}
	if diff := cmp.Diff(want, f.written); diff != "" || f.tokens != 1 || len(f.removed) > 0 {
		t.Errorf("a repeated step must not use a second token: %d tokens, removed %v, -want +got:\n%s", f.tokens, f.removed, diff)
	}

	if f.at != (Place{ShootName: "c-first", Namespace: "compass-system"}) {
		t.Errorf("want the namespace of the order, got %v", f.at)
	}
}

func TestReconnection(t *testing.T) {
	f := &fixture{agent: Agent{ConfiguredBy: "op-1", Version: "7", Connection: &Connection{ID: "former", State: Synchronized}}}

	if _, wait, err := f.run(t, "ConnectRuntimeAgent", "op-2"); err != nil || wait != 0 {
		t.Fatalf("next attempt after %s, %v", wait, err)
	}

	if last := f.written[0]; last.Over != "7" || last.Replaces != "former" || last.WrittenBy != "op-2" {
		t.Errorf("written %+v, want the version that was read and the replaced connection", last)
	}

	if diff := cmp.Diff([]string{"former"}, f.removed); diff != "" {
		t.Errorf("the old connection must be removed, so that the agent reconnects, -want +got:\n%s", diff)
	}

	f.agent.Connection = &Connection{ID: "new"}

	if _, _, err := f.run(t, "ConnectRuntimeAgent", "op-2"); err != nil || len(f.removed) != 1 || f.tokens != 1 {
		t.Errorf("a repeated step must not remove the new connection: removed %v, %d tokens, %v", f.removed, f.tokens, err)
	}
}

func TestReconnectionResumesAfterCrash(t *testing.T) {
	f := &fixture{agent: Agent{ConfiguredBy: "op-2", Replaces: "former", Connection: &Connection{ID: "former", State: Synchronized}}}

	if _, _, err := f.run(t, "ConnectRuntimeAgent", "op-2"); err != nil || f.tokens != 0 {
		t.Fatalf("the stored token must be reused: %d were issued, %v", f.tokens, err)
	}

	if diff := cmp.Diff([]string{"former"}, f.removed); diff != "" {
		t.Errorf("the old connection must be removed, -want +got:\n%s", diff)
	}
}

func TestConnectFailures(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		fixture fixture
		order   string
		off     bool
		kind    failure.Kind
		want    string
	}{
		"cluster away":  {"the cluster may respond later", fixture{agentErr: unavailable(failure.ComponentRuntime)}, ordered, false, failure.Transient, "the server does not respond"},
		"no token":      {"Director may respond later", fixture{tokenErr: unavailable("compass director")}, ordered, false, failure.Transient, "the server does not respond"},
		"refused":       {"the cluster's error is returned unchanged", fixture{configureErr: unavailable(failure.ComponentRuntime)}, ordered, false, failure.Transient, "the server does not respond"},
		"without agent": {"the order has no agent", fixture{}, `{}`, false, failure.Conflict, "has no runtime agent"},
		"other modules": {
			"the order has no agent", fixture{}, `{"kymaConfig": {"components": [{"component": "core"}, null]}}`, false, failure.Conflict, "has no runtime agent",
		},
		"no order":                {"an unreadable order is a bug", fixture{}, `{`, false, failure.Internal, "cannot be read"},
		"Director was turned off": {"an accepted operation says why it cannot continue", fixture{}, ordered, true, failure.Permanent, "APP_DIRECTOR_ENABLED"},
	} {
		t.Run(name, func(t *testing.T) {
			options := c.fixture.options()
			if c.off {
				options.Tokens = nil
			}

			_, wait, err := c.fixture.runOf(t, options, "ConnectRuntimeAgent", "op-1", c.order)
			if !failure.Is(err, c.kind) || wait != 0 || !strings.Contains(failure.Of(err).Text, c.want) || len(c.fixture.written) > 0 {
				t.Errorf("%s: next attempt after %s, %v, written %v", c.reason, wait, err, c.fixture.written)
			}
		})
	}
}

func TestDefaultNamespace(t *testing.T) {
	f := &fixture{}

	_, _, err := f.runOf(t, f.options(), "ConnectRuntimeAgent", "op-1", `{"kymaConfig": {"components": [{"component": "compass-runtime-agent"}]}}`)
	if err != nil || f.at.Namespace != "kyma-system" {
		t.Errorf("an order without a namespace for the agent: got %q, %v", f.at.Namespace, err)
	}
}

func TestWaitForAgent(t *testing.T) {
	for name, c := range map[string]struct {
		reason     string
		connection *Connection
		wait       time.Duration
		tokens     int
	}{
		"absent":      {"the agent may still pull its image", nil, 5 * time.Second, 0},
		"silent":      {"the agent has not reported a state yet", &Connection{ID: "id"}, 5 * time.Second, 0},
		"connected":   {"the agent has a certificate and has not synchronized yet", &Connection{State: Connected}, 2 * time.Second, 0},
		"unapplied":   {"the agent retries by itself", &Connection{State: ResourceApplicationFailed}, 2 * time.Second, 0},
		"another":     {"a state of a later version may pass", &Connection{State: "FutureState"}, 2 * time.Second, 0},
		"settled":     {"the wait is over", &Connection{State: Synchronized}, 0, 0},
		"half synced": {"the agent is connected", &Connection{State: SynchronizationFailed}, 0, 0},
		"unlabelled":  {"the agent is connected", &Connection{State: MetadataUpdateFailed}, 0, 0},
		"failed":      {"the agent has used its token and needs another one", &Connection{State: ConnectionFailed}, 2 * time.Minute, 1},
		"expired":     {"the agent cannot get a new certificate without a token", &Connection{State: ConnectionMaintenanceFailed}, 2 * time.Minute, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fixture{agent: Agent{ConfiguredBy: "op-1", Connection: c.connection, Version: "7", Replaces: "former"}}

			_, wait, err := f.run(t, "WaitForAgentToConnect", "op-1")
			if err != nil || wait != c.wait || f.tokens != c.tokens || len(f.written) != c.tokens {
				t.Errorf("%s: next attempt after %s, with %d tokens, written %v, %v", c.reason, wait, f.tokens, f.written, err)
			}

			for _, written := range f.written {
				if written.Over != "7" || written.Replaces != "former" || written.WrittenBy != "op-1" {
					t.Errorf("%s: written %+v", c.reason, written)
				}
			}
		})
	}
}

func TestWaitForAgentFailures(t *testing.T) {
	broken := Agent{Connection: &Connection{State: ConnectionFailed, Problems: []string{"bad certificate"}}}

	for name, fixture := range map[string]fixture{
		"the cluster does not respond": {agentErr: unavailable(failure.ComponentRuntime)},
		"no token is issued":           {agent: broken, tokenErr: unavailable("compass director")},
		"it cannot be configured":      {agent: broken, configureErr: unavailable(failure.ComponentRuntime)},
	} {
		t.Run(name, func(t *testing.T) {
			if _, wait, err := fixture.run(t, "WaitForAgentToConnect", "op-1"); !failure.Is(err, failure.Transient) || wait != 0 {
				t.Errorf("next attempt after %s, %v", wait, err)
			}
		})
	}

	f := &fixture{agent: broken}
	options := f.options()
	options.ConnectionTimeout = 0

	_, _, err := f.runOf(t, options, "WaitForAgentToConnect", "op-1", ordered)
	if text := failure.Of(err).ForOperators(); !failure.Is(err, failure.Permanent) || f.tokens != 0 ||
		!strings.Contains(text, "the runtime agent could not connect (ConnectionFailed): bad certificate") {
		t.Errorf("a timeout must return the agent's message and issue no token: %v", err)
	}

	options = f.options()
	options.Tokens = nil

	if _, _, err := f.runOf(t, options, "WaitForAgentToConnect", "op-1", ordered); !failure.Is(err, failure.Permanent) {
		t.Errorf("without Director no token can be issued: %v", err)
	}
}

func TestRetryStartsWithNewToken(t *testing.T) {
	for _, stage := range Reconnect((&fixture{}).options()).Stages {
		if stage.Name == "WaitForAgentToConnect" && stage.RetryFrom != "ConnectRuntimeAgent" {
			t.Errorf("a failed wait is retried from %q", stage.RetryFrom)
		}

		if stage.Retry.Window != 15*time.Minute || stage.Retry == process.DefaultRetry() {
			t.Errorf("%s is tried for %s", stage.Name, stage.Retry.Window)
		}
	}
}
