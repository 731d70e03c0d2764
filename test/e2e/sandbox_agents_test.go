package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
)

// inSandbox runs the sandbox on free ports while do uses its Provisioner.
func inSandbox(t *testing.T, config sandbox.Config, gardenProgram string, do func(c connected)) {
	t.Helper()

	ctx, stop := context.WithCancel(t.Context())
	output, announcement := io.Pipe()
	ended := make(chan error, 1)

	go func() {
		err := sandbox.Run(ctx, config, gardenProgram, announcement)
		_ = announcement.Close()

		ended <- err
	}()

	defer func() {
		stop()

		if err := <-ended; err != nil {
			t.Error(err)
		}

		if log, err := os.ReadFile(filepath.Join(config.Dir, "sandbox.log")); t.Failed() {
			t.Logf("log of the sandbox: %v\n%s", err, tail(string(log)))
		}
	}()

	lines := bufio.NewReader(output)
	line, _ := lines.ReadString('\n')

	go func() { _, _ = io.Copy(io.Discard, lines) }() // read the rest, because a full pipe would block the sandbox

	url := regexp.MustCompile(`http://\S+/graphql`).FindString(line)
	if url == "" {
		t.Fatalf("the first line of the sandbox is %q", line)
	}

	do(connected{clusters: clusters{T: t, url: url}})
}

// freshSandbox returns the default configuration of a sandbox in a new folder.
func freshSandbox(t *testing.T) sandbox.Config {
	t.Helper()

	config := sandbox.DefaultConfig()
	config.Dir, config.ClusterCreation = t.TempDir(), time.Second
	config.BrokerAddress, config.ProvisionerAddress = "127.0.0.1:0", "127.0.0.1:0"
	config.StatusAddress, config.ProvisionerStatusAddress = "127.0.0.1:0", "127.0.0.1:0"

	return config
}

// connects provisions a runtime whose agent connects, and returns its ID.
func (c connected) connects() string {
	c.Helper()

	made := c.order(provisionRuntime, map[string]any{"config": map[string]any{
		"runtimeInput": map[string]any{"name": "with-kyma"}, "kymaConfig": kymaOf("1.0.0"),
		"clusterConfig": map[string]any{"gardenerConfig": clusterOf("gcp")},
	}})
	c.wantSucceeded(made.ID)
	c.until(made.RuntimeID, "Connected")

	return made.RuntimeID
}

// reconnects makes the agent reconnect, and removes its runtime.
func (c connected) reconnects(runtimeID string) {
	c.Helper()
	c.until(runtimeID, "Connected")
	c.wantSucceeded(c.reconnect(runtimeID))
	c.until(runtimeID, "Connected")
	c.remove(runtimeID)
}

// TestSandboxAgents connects an agent, and reconnects it after restarts of the sandbox.
func TestSandboxAgents(t *testing.T) {
	t.Parallel()

	config := freshSandbox(t)
	alone := config
	alone.Director = false

	var runtimeID string

	inSandbox(t, config, "", func(c connected) { runtimeID = c.connects() })
	connections(t, config.Dir, 1)

	inSandbox(t, alone, "", func(c connected) {
		var id string
		if got := c.ask(reconnectAgent, map[string]any{"id": runtimeID}, &id); !strings.Contains(got, "runs without it") {
			t.Errorf("reconnecting the agent without Director: %q", got)
		}
	})

	inSandbox(t, config, "", func(c connected) {
		c.wantSucceeded(c.reconnect(runtimeID))
		connections(t, config.Dir, 2)
		c.reconnects(runtimeID)
	})
	forgotten(t, config.Dir)
}

// forgotten checks that Director has no runtime.
func forgotten(t *testing.T, folder string) {
	t.Helper()

	if left := inDirector(t, folder); len(left) > 0 {
		t.Errorf("Director still has %+v", left)
	}
}

// spent returns the tokens with which the agent has connected. Unused tokens may exist, because a repeated step requests another one.
func spent(runtime fakedirector.Runtime) (tokens []string) {
	for _, each := range runtime.OneTimeTokens {
		if each.Spent {
			tokens = append(tokens, each.Token)
		}
	}

	return tokens
}

// connections checks how often the agent of the only runtime has connected.
func connections(t *testing.T, folder string, want int) {
	t.Helper()

	if known := inDirector(t, folder); len(known) != 1 || len(spent(known[0])) != want {
		t.Errorf("Director has %+v, want one runtime with %d used tokens", known, want)
	}
}

// inDirector returns the runtimes in the file of the sandbox's fake Director.
func inDirector(t *testing.T, folder string) []fakedirector.Runtime {
	t.Helper()

	text, err := os.ReadFile(filepath.Join(folder, "director.json"))
	if err != nil {
		t.Fatal(err)
	}

	var runtimes []fakedirector.Runtime
	if err := json.Unmarshal(text, &runtimes); err != nil {
		t.Fatal(err)
	}

	return runtimes
}
