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
	"github.com/environment-broker/environment-broker/test/harness"
)

// withSandbox runs a sandbox, calls use with a client of its Provisioner, and stops the sandbox when use returns.
func withSandbox(t *testing.T, config sandbox.Config, programs sandbox.Programs, use func(c agentEnv)) {
	t.Helper()

	ctx, stop := context.WithCancel(t.Context())
	output, announcement := io.Pipe()
	ended := make(chan error, 1)

	go func() {
		err := sandbox.Run(ctx, config, programs, announcement)
		_ = announcement.Close()

		ended <- err
	}()

	defer func() {
		stop()

		if err := <-ended; err != nil {
			t.Error(err)
		}

		if log, err := os.ReadFile(filepath.Join(config.Dir, "sandbox.log")); t.Failed() {
			t.Logf("log of the sandbox: %v\n%s", err, harness.LastLines(string(log)))
		}
	}()

	lines := bufio.NewReader(output)
	line, _ := lines.ReadString('\n')

	go func() { _, _ = io.Copy(io.Discard, lines) }() // a full pipe would block the sandbox

	url := regexp.MustCompile(`http://\S+/graphql`).FindString(line)
	if url == "" {
		t.Fatalf("the first line of the sandbox is %q", line)
	}

	use(agentEnv{clusters: clusters{T: t, url: url}})
}

// sandboxConfig returns the default configuration of a sandbox, with a new folder and free ports.
func sandboxConfig(t *testing.T) sandbox.Config {
	t.Helper()

	config := sandbox.DefaultConfig()
	config.Dir, config.ClusterCreation = t.TempDir(), time.Second
	config.BrokerAddress, config.ProvisionerAddress = "127.0.0.1:0", "127.0.0.1:0"
	config.StatusAddress, config.ProvisionerStatusAddress = "127.0.0.1:0", "127.0.0.1:0"
	config.BundlesAddress, config.BundlesStatusAddress = "127.0.0.1:0", "127.0.0.1:0"

	return config
}

// provisionConnected provisions a runtime, waits until its agent has connected, and returns the ID of the runtime.
func (c agentEnv) provisionConnected() string {
	c.Helper()

	created := c.mustSend(provisionRuntime, map[string]any{"config": map[string]any{
		"runtimeInput": map[string]any{"name": "with-kyma"}, "kymaConfig": kymaOf("1.0.0"),
		"clusterConfig": map[string]any{"gardenerConfig": clusterOf("gcp")},
	}})
	c.wantSucceeded(created.ID)
	c.waitForConnection(created.RuntimeID, "Connected")

	return created.RuntimeID
}

// reconnectAndRemove makes the agent of a runtime reconnect, and removes the runtime.
func (c agentEnv) reconnectAndRemove(runtimeID string) {
	c.Helper()
	c.waitForConnection(runtimeID, "Connected")
	c.wantSucceeded(c.reconnect(runtimeID))
	c.waitForConnection(runtimeID, "Connected")
	c.remove(runtimeID)
}

// TestSandboxAgents checks that a runtime's agent connects, and that it can be reconnected after each restart of the sandbox.
func TestSandboxAgents(t *testing.T) {
	t.Parallel()

	config := sandboxConfig(t)
	withoutDirector := config
	withoutDirector.Director = false

	var runtimeID string

	withSandbox(t, config, sandbox.Programs{}, func(c agentEnv) { runtimeID = c.provisionConnected() })
	wantConnections(t, config.Dir, 1)

	withSandbox(t, withoutDirector, sandbox.Programs{}, func(c agentEnv) {
		var id string
		if got := c.send(reconnectAgent, map[string]any{"id": runtimeID}, &id); !strings.Contains(got, "runs without Director") {
			t.Errorf("reconnecting the agent without Director: %q", got)
		}
	})

	withSandbox(t, config, sandbox.Programs{}, func(c agentEnv) {
		c.wantSucceeded(c.reconnect(runtimeID))
		wantConnections(t, config.Dir, 2)
		c.reconnectAndRemove(runtimeID)
	})
	wantNoDirectorRuntimes(t, config.Dir)
}

func wantNoDirectorRuntimes(t *testing.T, folder string) {
	t.Helper()

	if left := directorRuntimes(t, folder); len(left) > 0 {
		t.Errorf("Director still has %+v", left)
	}
}

// spentTokens returns the tokens that the agent has used to connect. The runtime may also have unused tokens, because a
// repeated step requests another token.
func spentTokens(runtime fakedirector.Runtime) (tokens []string) {
	for _, each := range runtime.OneTimeTokens {
		if each.Spent {
			tokens = append(tokens, each.Token)
		}
	}

	return tokens
}

func wantConnections(t *testing.T, folder string, want int) {
	t.Helper()

	if registered := directorRuntimes(t, folder); len(registered) != 1 || len(spentTokens(registered[0])) != want {
		t.Errorf("Director has %+v, want one runtime with %d used tokens", registered, want)
	}
}

// directorRuntimes reads the runtimes from the file in which the sandbox's fake Director stores them.
func directorRuntimes(t *testing.T, folder string) []fakedirector.Runtime {
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
