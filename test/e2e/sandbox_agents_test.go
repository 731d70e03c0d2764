package e2e

import (
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
	"github.com/environment-broker/environment-broker/internal/simulator/director"
)

// inSandbox has the sandbox run, on free ports, while something is done with its Provisioner.
func inSandbox(t *testing.T, config sandbox.Config, gardenProgram string, do func(c connected)) {
	t.Helper()

	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	output, announcement := io.Pipe()
	ended := make(chan error, 1)

	go func() {
		err := sandbox.Run(ctx, config, gardenProgram, announcement)
		_ = announcement.CloseWithError(io.EOF)

		ended <- err
	}()

	line := make([]byte, 1000)
	read, _ := output.Read(line)

	url := regexp.MustCompile(`http://\S+/graphql`).FindString(string(line[:read]))
	if url == "" {
		t.Fatalf("the sandbox said %q and ended: %v", line[:read], <-ended)
	}

	do(connected{clusters: clusters{T: t, url: url}})
	stop()

	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// sandboxAgentStory has the agent of a runtime connect in the sandbox as it is started without any setting, connect anew after a restart, and
// go with its runtime.
func sandboxAgentStory(t *testing.T, gardenProgram string) {
	t.Helper()

	config := sandbox.DefaultConfig()
	config.Dir, config.ClusterCreation = t.TempDir(), time.Second
	config.BrokerAddress, config.ProvisionerAddress = "127.0.0.1:0", "127.0.0.1:0"
	config.StatusAddress, config.ProvisionerStatusAddress = "127.0.0.1:0", "127.0.0.1:0"

	alone := config
	alone.Director = false

	var made told

	inSandbox(t, config, gardenProgram, func(c connected) {
		made = c.order(provisionRuntime, map[string]any{"config": map[string]any{
			"runtimeInput": map[string]any{"name": "with-kyma"}, "kymaConfig": kymaOf("1.0.0"),
			"clusterConfig": map[string]any{"gardenerConfig": clusterOf("gcp")},
		}})
		c.succeeded(made.ID)
		c.until(made.RuntimeID, "Connected")
	})
	spent(t, config.Dir, 1)

	inSandbox(t, alone, gardenProgram, func(c connected) {
		var id string
		if got := c.ask(reconnectAgent, map[string]any{"id": made.RuntimeID}, &id); !strings.Contains(got, "works without it") {
			t.Errorf("without Director an agent that is to connect anew gives %q", got)
		}
	})

	inSandbox(t, config, gardenProgram, func(c connected) {
		c.until(made.RuntimeID, "Connected")
		c.succeeded(c.reconnect(made.RuntimeID))
		c.until(made.RuntimeID, "Connected")
		spent(t, config.Dir, 2)

		c.remove(made.RuntimeID)
	})

	if left := inDirector(t, config.Dir); len(left) > 0 {
		t.Errorf("Director still knows %+v", left)
	}
}

// spent finds out whether the only runtime has been given so many tokens, and has spent all.
func spent(t *testing.T, folder string, want int) {
	t.Helper()

	known := inDirector(t, folder)
	if len(known) != 1 || len(known[0].OneTimeTokens) != want {
		t.Fatalf("Director knows %+v, want one runtime with %d tokens", known, want)
	}

	for _, token := range known[0].OneTimeTokens {
		if !token.Spent {
			t.Errorf("%+v: each token is good for one connection", known[0].OneTimeTokens)
		}
	}
}

// inDirector are the runtimes that the simulated Director of a sandbox has written down.
func inDirector(t *testing.T, folder string) []director.Runtime {
	t.Helper()

	text, err := os.ReadFile(filepath.Join(folder, "director.json"))
	if err != nil {
		t.Fatal(err)
	}

	var runtimes []director.Runtime
	if err := json.Unmarshal(text, &runtimes); err != nil {
		t.Fatal(err)
	}

	return runtimes
}

func TestSandboxHasAgents(t *testing.T) {
	t.Parallel()

	sandboxAgentStory(t, "")
}
