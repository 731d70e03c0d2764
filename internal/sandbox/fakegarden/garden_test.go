package fakegarden_test

import (
	"context"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/conformance"
)

// patience is how long a test waits for a Shoot.
const patience = 3 * time.Minute

// start runs a garden in a folder until stop is called or the test ends.
func start(t *testing.T, dir string, creation time.Duration) (opened *fakegarden.Memory, stop func()) {
	t.Helper()
	log, _ := test.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	opened, err := fakegarden.Open(t.Context(), fakegarden.Options{Dir: dir, ClusterCreation: creation, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- opened.Run(ctx) }()
	var stopped bool
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("running the garden: %v", err)
		}
	}
	t.Cleanup(stop)
	return opened, stop
}

func underTest(memory *fakegarden.Memory) conformance.Garden {
	return conformance.Garden{
		Client:    memory.Client(),
		Namespace: memory.Namespace(),
		Project:   fakegarden.DefaultProject,
		Patience:  patience,
	}
}

func TestLifecycle(t *testing.T) {
	memory, _ := start(t, t.TempDir(), time.Second)
	conformance.Lifecycle(t, underTest(memory))
}

func TestFaults(t *testing.T) {
	memory, _ := start(t, t.TempDir(), time.Second)
	conformance.Faults(t, underTest(memory))
}

func TestRejections(t *testing.T) {
	memory, _ := start(t, t.TempDir(), time.Second)
	conformance.Rejections(t, underTest(memory))
}
