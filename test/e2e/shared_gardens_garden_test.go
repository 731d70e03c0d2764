//go:build garden

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/test/harness"
)

// localProject is a project of a local garden.
type localProject struct {
	project

	// kubeconfig and admin are the paths of the kubeconfigs of a member and of the administrator.
	kubeconfig, admin string
}

// asAdmin returns the project with the rights of the administrator.
func (p localProject) asAdmin(t *testing.T) localProject {
	t.Helper()

	return connectProject(t, p.name, p.admin, p.admin)
}

func connectProject(t *testing.T, name, kubeconfig, admin string) localProject {
	t.Helper()

	api, err := gardener.Connect(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}

	return localProject{project{api, name}, kubeconfig, admin}
}

// gardenProgram returns the path of the local garden's executable.
func gardenProgram(t *testing.T) string {
	t.Helper()

	program, err := filepath.Abs(filepath.Join(harness.Root, ".bin", "garden"))
	if err != nil {
		t.Fatal(err)
	}

	return program
}

// firstLine is the start of the first line that a local garden prints. The rest of the line is the path of the kubeconfig.
const firstLine = "garden ready kubeconfig="

// localGarden runs a local garden for one test. runtimes is the value of the flag --runtimes.
func localGarden(t *testing.T, runtimes string) localProject {
	t.Helper()

	line := harness.Launch(t, nil, gardenProgram(t), "--dir", t.TempDir(), "--runtimes", runtimes, "--cluster-creation=1s").Line()

	kubeconfig, found := strings.CutPrefix(line, firstLine)
	if !found {
		t.Fatalf("the first line of the garden is %q", line)
	}

	return connectProject(t, fakegarden.DefaultProject, kubeconfig, filepath.Join(filepath.Dir(kubeconfig), "admin.kubeconfig"))
}

// projectsPerGarden is the number of tests that share a garden. Two gardens, one for each mode, are enough for one run of all tests.
const projectsPerGarden = 12

// shared contains the gardens that tests share, by the value of --runtimes. A start takes several seconds of CPU time.
var shared struct {
	sync.Mutex

	gardens map[string]*gardenOfTests
}

// gardenOfTests is a local garden that runs until all tests have ended.
type gardenOfTests struct {
	dir, log string
	command  *exec.Cmd
	// left contains the names of the projects that no test has used.
	left []string
}

// sharedGarden returns a project of a local garden that other tests use, too. runtimes is the value of the flag --runtimes. No other test
// uses the project.
func sharedGarden(t *testing.T, runtimes string) localProject {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()

	garden := shared.gardens[runtimes]
	if garden == nil || len(garden.left) == 0 {
		var err error
		if garden, err = runGarden(gardenProgram(t), runtimes); err != nil {
			t.Fatal(err)
		}

		if shared.gardens == nil {
			shared.gardens = map[string]*gardenOfTests{}
		}

		shared.gardens[runtimes] = garden
		atEnd = append(atEnd, garden.stop)
	}

	t.Cleanup(func() {
		if log, err := os.ReadFile(garden.log); t.Failed() {
			t.Logf("log of the shared garden: %v\n%s", err, harness.LastLines(string(log)))
		}
	})

	name := garden.left[0]
	garden.left = garden.left[1:]

	return connectProject(t, name, filepath.Join(garden.dir, "kubeconfig"), filepath.Join(garden.dir, "admin.kubeconfig"))
}

// runGarden starts a garden with projectsPerGarden projects and waits until it is ready.
func runGarden(program, runtimes string) (*gardenOfTests, error) {
	dir, err := os.MkdirTemp("", "garden-")
	if err != nil {
		return nil, err
	}

	g := &gardenOfTests{dir: dir, log: filepath.Join(dir, "garden.log")}
	arguments := []string{"--dir", dir, "--runtimes", runtimes, "--cluster-creation=1s"}

	for number := range projectsPerGarden {
		name := "p" + strconv.Itoa(number)
		g.left = append(g.left, name)
		arguments = append(arguments, "--project", name)
	}

	log, err := os.Create(g.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()

	g.command = exec.Command(program, arguments...)
	g.command.Stderr = log

	output, err := g.command.StdoutPipe()
	if err != nil {
		return nil, err
	}

	if err := g.command.Start(); err != nil {
		return nil, err
	}

	overdue := time.AfterFunc(harness.Patience, func() { _ = g.command.Process.Kill() })
	defer overdue.Stop()

	// At the end of the output, the line is empty.
	if line, _ := bufio.NewReader(output).ReadString('\n'); !strings.HasPrefix(line, firstLine) {
		text, _ := os.ReadFile(g.log)
		g.stop()

		return nil, fmt.Errorf("the first line of the garden is %q\n%s", line, harness.LastLines(string(text)))
	}

	return g, nil
}

// stop stops the garden and removes its folder. The garden stops its servers when it gets SIGTERM.
func (g *gardenOfTests) stop() {
	if err := errors.Join(g.command.Process.Signal(syscall.SIGTERM), g.command.Wait(), os.RemoveAll(g.dir)); err != nil {
		fmt.Fprintln(os.Stderr, "stopping a shared garden:", err)
	}
}
