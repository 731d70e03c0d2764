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
	w := &fixture{}
	reconnect := Reconnect(w.options())

	if err := reconnect.Validate(); err != nil {
		t.Error(err)
	}

	if diff := cmp.Diff([]string{"ConnectRuntimeAgent", "WaitForAgentToConnect"}, reconnect.StageNames()); diff != "" {
		t.Errorf("running operations refer to stages by name, -want +got:\n%s", diff)
	}

	if got := Stages(w.options()); len(got) != len(reconnect.Stages) {
		t.Errorf("a provisioning uses the same stages, got %d", len(got))
	}

	for _, stage := range Stages(w.options()) {
		for _, registered := range []bool{false, true} {
			op := process.NewOperation(process.Record{}, operation.Data{Registered: registered}, time.Time{})
			if got := stage.Steps[0].When(op); got != registered {
				t.Errorf("%s runs: %t, for a runtime registered in Director: %t", stage.Name, got, registered)
			}
		}
	}

	followed := w.options()
	followed.Connected = []process.Stage[operation.Data]{{Name: "TellingConnection"}}

	if names := Reconnect(followed).StageNames(); names[len(names)-1] != "TellingConnection" {
		t.Errorf("the stage after the connection is not the last one: %v", names)
	}

	without := w.options()
	without.Tokens = nil

	if got := Stages(without); got != nil {
		t.Errorf("without Director a provisioning has no agent stages, got %d", len(got))
	}

	if err := Reconnect(without).Validate(); err != nil {
		t.Errorf("operations accepted with Director lost their process: %v", err)
	}
}

func TestFirstConnection(t *testing.T) {
	w := &fixture{}

	for range 2 {
		if op, wait, err := w.run(t, "ConnectRuntimeAgent", "op-1"); err != nil || wait != 0 || !op.Data.Registered {
			t.Fatalf("comes back after %s, known to Director: %t, %v", wait, op.Data.Registered, err)
		}
	}

	want := []Configuration{{
		Token: Token{Token: "token-1", ConnectorURL: "https://connector.example.com"}, RuntimeID: runtimeID, Tenant: "tenant", WrittenBy: "op-1",
	}}
	if diff := cmp.Diff(want, w.written); diff != "" || w.tokens != 1 || len(w.removed) > 0 {
		t.Errorf("a repeated step spends no second token: %d tokens, removed %v, -want +got:\n%s", w.tokens, w.removed, diff)
	}

	if w.at != (Place{ShootName: "c-first", Namespace: "compass-system"}) {
		t.Errorf("the agent reads the namespace of its order, got %v", w.at)
	}
}

func TestReconnection(t *testing.T) {
	w := &fixture{agent: Agent{ConfiguredBy: "op-1", Version: "7", Connection: &Connection{ID: "former", State: Synchronized}}}

	if _, wait, err := w.run(t, "ConnectRuntimeAgent", "op-2"); err != nil || wait != 0 {
		t.Fatalf("comes back after %s, %v", wait, err)
	}

	if last := w.written[0]; last.Over != "7" || last.Replaces != "former" || last.WrittenBy != "op-2" {
		t.Errorf("written %+v, want it over the version that was read, with the replaced connection", last)
	}

	if diff := cmp.Diff([]string{"former"}, w.removed); diff != "" {
		t.Errorf("the agent reconnects when its connection is gone, -want +got:\n%s", diff)
	}

	w.agent.Connection = &Connection{ID: "new"}

	if _, _, err := w.run(t, "ConnectRuntimeAgent", "op-2"); err != nil || len(w.removed) != 1 || w.tokens != 1 {
		t.Errorf("a repeated step keeps the new connection: removed %v, %d tokens, %v", w.removed, w.tokens, err)
	}
}

func TestReconnectionResumesAfterCrash(t *testing.T) {
	w := &fixture{agent: Agent{ConfiguredBy: "op-2", Replaces: "former", Connection: &Connection{ID: "former", State: Synchronized}}}

	if _, _, err := w.run(t, "ConnectRuntimeAgent", "op-2"); err != nil || w.tokens != 0 {
		t.Fatalf("the stored token is reused: %d were issued, %v", w.tokens, err)
	}

	if diff := cmp.Diff([]string{"former"}, w.removed); diff != "" {
		t.Errorf("the old connection is removed, -want +got:\n%s", diff)
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
		"cluster away":  {"it may answer later", fixture{unread: away(failure.ComponentRuntime)}, ordered, false, failure.Transient, "nobody answers"},
		"no token":      {"Director may answer later", fixture{noToken: away("compass director")}, ordered, false, failure.Transient, "nobody answers"},
		"refused":       {"the cluster's error is passed on", fixture{unconfigured: away(failure.ComponentRuntime)}, ordered, false, failure.Transient, "nobody answers"},
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
				t.Errorf("%s: comes back after %s, %v, written %v", c.reason, wait, err, c.fixture.written)
			}
		})
	}
}

func TestDefaultNamespace(t *testing.T) {
	w := &fixture{}

	_, _, err := w.runOf(t, w.options(), "ConnectRuntimeAgent", "op-1", `{"kymaConfig": {"components": [{"component": "compass-runtime-agent"}]}}`)
	if err != nil || w.at.Namespace != "kyma-system" {
		t.Errorf("an order without a namespace for the agent: got %q, %v", w.at.Namespace, err)
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
		"silent":      {"it has started", &Connection{ID: "id"}, 5 * time.Second, 0},
		"connected":   {"it has a certificate and has not synchronized yet", &Connection{State: Connected}, 2 * time.Second, 0},
		"unapplied":   {"the agent retries", &Connection{State: ResourceApplicationFailed}, 2 * time.Second, 0},
		"another":     {"a state of a later version may pass", &Connection{State: "Pondering"}, 2 * time.Second, 0},
		"settled":     {"it is done", &Connection{State: Synchronized}, 0, 0},
		"half synced": {"it is connected", &Connection{State: SynchronizationFailed}, 0, 0},
		"unlabelled":  {"it is connected", &Connection{State: MetadataUpdateFailed}, 0, 0},
		"failed":      {"its token was used, so it gets another one", &Connection{State: ConnectionFailed}, 2 * time.Minute, 1},
		"expired":     {"it cannot get a new certificate without a token", &Connection{State: ConnectionMaintenanceFailed}, 2 * time.Minute, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := &fixture{agent: Agent{ConfiguredBy: "op-1", Connection: c.connection, Version: "7", Replaces: "former"}}

			_, wait, err := w.run(t, "WaitForAgentToConnect", "op-1")
			if err != nil || wait != c.wait || w.tokens != c.tokens || len(w.written) != c.tokens {
				t.Errorf("%s: comes back after %s, with %d tokens, written %v, %v", c.reason, wait, w.tokens, w.written, err)
			}

			for _, written := range w.written {
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
		"the cluster does not answer": {unread: away(failure.ComponentRuntime)},
		"no token is issued":          {agent: broken, noToken: away("compass director")},
		"it cannot be configured":     {agent: broken, unconfigured: away(failure.ComponentRuntime)},
	} {
		t.Run(name, func(t *testing.T) {
			if _, wait, err := fixture.run(t, "WaitForAgentToConnect", "op-1"); !failure.Is(err, failure.Transient) || wait != 0 {
				t.Errorf("comes back after %s, %v", wait, err)
			}
		})
	}

	w := &fixture{agent: broken}
	options := w.options()
	options.ConnectionTimeout = 0

	_, _, err := w.runOf(t, options, "WaitForAgentToConnect", "op-1", ordered)
	if text := failure.Of(err).Text; !failure.Is(err, failure.Permanent) || w.tokens != 0 ||
		!strings.Contains(text, "the runtime agent could not connect (ConnectionFailed): bad certificate") {
		t.Errorf("a timeout fails with the agent's message and spends no token: %v", err)
	}

	options = w.options()
	options.Tokens = nil

	if _, _, err := w.runOf(t, options, "WaitForAgentToConnect", "op-1", ordered); !failure.Is(err, failure.Permanent) {
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
