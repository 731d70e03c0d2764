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
	w := &world{}
	reconnect := Reconnect(w.options())

	if err := reconnect.Validate(); err != nil {
		t.Error(err)
	}

	if diff := cmp.Diff([]string{"ConnectRuntimeAgent", "WaitForAgentToConnect"}, reconnect.StageNames()); diff != "" {
		t.Errorf("operations that run know their stages by name, -want +got:\n%s", diff)
	}

	if got := Stages(w.options()); len(got) != len(reconnect.Stages) {
		t.Errorf("a provisioning connects its agent in the same stages, got %d", len(got))
	}

	for _, stage := range Stages(w.options()) {
		for _, registered := range []bool{false, true} {
			op := process.NewOperation(process.Record{}, operation.Data{Registered: registered}, time.Time{})
			if got := stage.Steps[0].When(op); got != registered {
				t.Errorf("%s is run: %t, for a runtime that Director knows: %t", stage.Name, got, registered)
			}
		}
	}

	followed := w.options()
	followed.Connected = []process.Stage[operation.Data]{{Name: "TellingConnection"}}

	if names := Reconnect(followed).StageNames(); names[len(names)-1] != "TellingConnection" {
		t.Errorf("what follows a connection comes last: %v", names)
	}

	without := w.options()
	without.Tokens = nil

	if got := Stages(without); got != nil {
		t.Errorf("without Director a provisioning connects nobody, got %d stages", len(got))
	}

	if err := Reconnect(without).Validate(); err != nil {
		t.Errorf("operations that were accepted when there was a Director still have their process: %v", err)
	}
}

func TestFirstConnection(t *testing.T) {
	w := &world{}

	for range 2 {
		if op, wait, err := w.run(t, "ConnectRuntimeAgent", "op-1"); err != nil || wait != 0 || !op.Data.Registered {
			t.Fatalf("comes back after %s, known to Director: %t, %v", wait, op.Data.Registered, err)
		}
	}

	want := []Configuration{{
		Token: Token{Token: "token-1", ConnectorURL: "https://connector.example.com"}, RuntimeID: runtimeID, Tenant: "tenant", WrittenBy: "op-1",
	}}
	if diff := cmp.Diff(want, w.written); diff != "" || w.tokens != 1 || len(w.removed) > 0 {
		t.Errorf("run again the step spends no second token: %d tokens, removed %v, -want +got:\n%s", w.tokens, w.removed, diff)
	}

	if w.at != (Place{ShootName: "c-first", Namespace: "compass-system"}) {
		t.Errorf("the agent reads in the namespace that its order says, got %v", w.at)
	}
}

func TestReconnection(t *testing.T) {
	w := &world{agent: Agent{ConfiguredBy: "op-1", Version: "7", Connection: &Connection{ID: "former", State: Synchronized}}}

	if _, wait, err := w.run(t, "ConnectRuntimeAgent", "op-2"); err != nil || wait != 0 {
		t.Fatalf("comes back after %s, %v", wait, err)
	}

	if last := w.written[0]; last.Over != "7" || last.Replaces != "former" || last.WrittenBy != "op-2" {
		t.Errorf("written %+v, want it over what was read, with what it does away with", last)
	}

	if diff := cmp.Diff([]string{"former"}, w.removed); diff != "" {
		t.Errorf("the agent connects anew when its connection is gone, -want +got:\n%s", diff)
	}

	w.agent.Connection = &Connection{ID: "new"}

	if _, _, err := w.run(t, "ConnectRuntimeAgent", "op-2"); err != nil || len(w.removed) != 1 || w.tokens != 1 {
		t.Errorf("run again the step leaves the new connection alone: removed %v, %d tokens, %v", w.removed, w.tokens, err)
	}
}

func TestReconnectionGoesOnAfterACrash(t *testing.T) {
	w := &world{agent: Agent{ConfiguredBy: "op-2", Replaces: "former", Connection: &Connection{ID: "former", State: Synchronized}}}

	if _, _, err := w.run(t, "ConnectRuntimeAgent", "op-2"); err != nil || w.tokens != 0 {
		t.Fatalf("the token is there: %d were asked for, %v", w.tokens, err)
	}

	if diff := cmp.Diff([]string{"former"}, w.removed); diff != "" {
		t.Errorf("what was still to be removed is, -want +got:\n%s", diff)
	}
}

func TestConnectFailures(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		world  world
		order  string
		off    bool
		kind   failure.Kind
		want   string
	}{
		"cluster away":  {"it may answer later", world{unread: away(failure.ComponentRuntime)}, ordered, false, failure.Transient, "nobody answers"},
		"no token":      {"Director may answer later", world{noToken: away("compass director")}, ordered, false, failure.Transient, "nobody answers"},
		"refused":       {"the cluster's word is passed on", world{unconfigured: away(failure.ComponentRuntime)}, ordered, false, failure.Transient, "nobody answers"},
		"without agent": {"nobody would connect", world{}, `{}`, false, failure.Conflict, "has no runtime agent"},
		"other modules": {
			"nobody would connect", world{}, `{"kymaConfig": {"components": [{"component": "core"}, null]}}`, false, failure.Conflict, "has no runtime agent",
		},
		"no order":                {"what cannot be read is a fault of ours", world{}, `{`, false, failure.Internal, "cannot be read"},
		"Director was turned off": {"an accepted operation says why it cannot go on", world{}, ordered, true, failure.Permanent, "APP_DIRECTOR_ENABLED"},
	} {
		t.Run(name, func(t *testing.T) {
			options := c.world.options()
			if c.off {
				options.Tokens = nil
			}

			_, wait, err := c.world.runOf(t, options, "ConnectRuntimeAgent", "op-1", c.order)
			if !failure.Is(err, c.kind) || wait != 0 || !strings.Contains(failure.Of(err).Text, c.want) || len(c.world.written) > 0 {
				t.Errorf("%s: comes back after %s, %v, written %v", c.reason, wait, err, c.world.written)
			}
		})
	}
}

func TestDefaultNamespace(t *testing.T) {
	w := &world{}

	_, _, err := w.runOf(t, w.options(), "ConnectRuntimeAgent", "op-1", `{"kymaConfig": {"components": [{"component": "compass-runtime-agent"}]}}`)
	if err != nil || w.at.Namespace != "kyma-system" {
		t.Errorf("an order that does not say where the agent stands: got %q, %v", w.at.Namespace, err)
	}
}

func TestWaitForAgent(t *testing.T) {
	for name, c := range map[string]struct {
		reason     string
		connection *Connection
		wait       time.Duration
		tokens     int
	}{
		"absent":      {"its image is fetched first", nil, 5 * time.Second, 0},
		"silent":      {"it has begun", &Connection{ID: "id"}, 5 * time.Second, 0},
		"connected":   {"it has a certificate, and has not spoken with Director yet", &Connection{State: Connected}, 2 * time.Second, 0},
		"unapplied":   {"it tries again by itself", &Connection{State: ResourceApplicationFailed}, 2 * time.Second, 0},
		"another":     {"what a later agent says may pass", &Connection{State: "Pondering"}, 2 * time.Second, 0},
		"settled":     {"it is done", &Connection{State: Synchronized}, 0, 0},
		"half synced": {"the connection is there", &Connection{State: SynchronizationFailed}, 0, 0},
		"unlabelled":  {"the connection is there", &Connection{State: MetadataUpdateFailed}, 0, 0},
		"failed":      {"its token is spent, so it gets another", &Connection{State: ConnectionFailed}, 2 * time.Minute, 1},
		"expired":     {"it cannot get a new certificate without a token", &Connection{State: ConnectionMaintenanceFailed}, 2 * time.Minute, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{agent: Agent{ConfiguredBy: "op-1", Connection: c.connection, Version: "7", Replaces: "former"}}

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

	for name, world := range map[string]world{
		"the cluster does not answer": {unread: away(failure.ComponentRuntime)},
		"there is no other token":     {agent: broken, noToken: away("compass director")},
		"it cannot be configured":     {agent: broken, unconfigured: away(failure.ComponentRuntime)},
	} {
		t.Run(name, func(t *testing.T) {
			if _, wait, err := world.run(t, "WaitForAgentToConnect", "op-1"); !failure.Is(err, failure.Transient) || wait != 0 {
				t.Errorf("comes back after %s, %v", wait, err)
			}
		})
	}

	w := &world{agent: broken}
	options := w.options()
	options.ConnectionTimeout = 0

	_, _, err := w.runOf(t, options, "WaitForAgentToConnect", "op-1", ordered)
	if text := failure.Of(err).Text; !failure.Is(err, failure.Permanent) || w.tokens != 0 ||
		!strings.Contains(text, "the runtime agent could not connect (ConnectionFailed): bad certificate") {
		t.Errorf("when its time is over it fails with the agent's words, and spends no token: %v", err)
	}

	options = w.options()
	options.Tokens = nil

	if _, _, err := w.runOf(t, options, "WaitForAgentToConnect", "op-1", ordered); !failure.Is(err, failure.Permanent) {
		t.Errorf("without Director there is no other token: %v", err)
	}
}

func TestRetryBeginsWithAnotherToken(t *testing.T) {
	for _, stage := range Reconnect((&world{}).options()).Stages {
		if stage.Name == "WaitForAgentToConnect" && stage.RetryFrom != "ConnectRuntimeAgent" {
			t.Errorf("a wait that failed is retried from %q", stage.RetryFrom)
		}

		if stage.Retry.Window != 15*time.Minute || stage.Retry == process.DefaultRetry() {
			t.Errorf("%s is tried for %s", stage.Name, stage.Retry.Window)
		}
	}
}
