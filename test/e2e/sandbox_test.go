package e2e

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestSandboxSurvivesSIGKILL kills the sandbox during the creation of instances and during a deletion. After each restart the
// sandbox continues the operations with the same data.
func TestSandboxSurvivesSIGKILL(t *testing.T) {
	t.Parallel()

	path := harness.Build(t, "sandbox") // before freeAddress, because another process could take the address during the build
	folder, address := t.TempDir(), harness.FreeAddress(t)
	variables := []string{
		"SANDBOX_DIR=" + folder,
		"SANDBOX_CLUSTER_CREATION=3s",
		"SANDBOX_BROKER_ADDRESS=" + address,
		"SANDBOX_PROVISIONER_ADDRESS=" + harness.FreeAddress(t),
		"SANDBOX_STATUS_ADDRESS=" + harness.FreeAddress(t),
		"SANDBOX_PROVISIONER_STATUS_ADDRESS=" + harness.FreeAddress(t),
		"SANDBOX_BUNDLES_ADDRESS=" + harness.FreeAddress(t),
		"SANDBOX_BUNDLES_STATUS_ADDRESS=" + harness.FreeAddress(t),
	}
	p := newPlatform(t, "http://"+address)
	p.User, p.Password = sandbox.User, sandbox.Password

	begin := func() *harness.Program {
		running := harness.Launch(t, variables, path)

		if line := running.Line(); !strings.HasPrefix(line, "sandbox ready") || !strings.Contains(line, address) {
			t.Fatalf("the first line of the sandbox is %q", line)
		}

		return running
	}

	running := begin()

	p.Create("first", harness.PlanAWS)
	p.Create("second", harness.PlanGCP)
	p.Until("the Shoots", func() bool { return shootFiles(t, folder) == 2 })
	running.Kill()

	running = begin()

	p.WantSucceeded("first")
	p.WantSucceeded("second")
	harness.WantRuntimeResponds(t, "the administrator's kubeconfig", p.kubeconfig("first"))

	if shoots := shootFiles(t, folder); shoots != 2 {
		t.Errorf("want 2 Shoots, got %d", shoots)
	}

	p.Delete("first", harness.PlanAWS)
	running.Kill()

	running = begin()

	p.WantGone("first")

	if registered := directorRuntimes(t, folder); len(registered) != 1 {
		t.Errorf("Director has %+v, want one runtime", registered)
	}

	if shoots := shootFiles(t, folder); shoots != 1 {
		t.Errorf("want 1 Shoot, got %d", shoots)
	}

	began := time.Now()

	second := harness.Launch(t, variables, path)
	<-second.Ended // a second sandbox fails, because the first one has locked the folder

	if second.ExitCode() != 1 || time.Since(began) > harness.Patience {
		t.Errorf("a second sandbox in the same folder exited with code %d", second.ExitCode())
	}

	running.Signal(syscall.SIGINT)
	<-running.Ended

	if code := running.ExitCode(); code != 0 {
		t.Errorf("the interrupted sandbox exited with code %d, want 0", code)
	}
}

// shootFiles counts the Shoots in the files of the fake garden.
func shootFiles(t *testing.T, folder string) int {
	t.Helper()

	found, err := filepath.Glob(filepath.Join(folder, "garden", "objects", "shoots.*", "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}

	return len(found)
}
