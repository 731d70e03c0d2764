package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/environment-broker/environment-broker/test/bench/report"
)

// sandboxStarts is the number of starts with the bundle provisioner in each round, and the number of starts without it. A start
// takes less than a second.
const sandboxStarts = 4

// measureSandbox compares starts of the sandbox with and without the bundle provisioner. Each start has an empty folder and ends
// when the sandbox reports that it is ready. The sandbox builds and starts the bundler only afterwards.
func measureSandbox(s *scope) {
	path := filepath.Join(s.TempDir(), "sandbox")
	if output, err := exec.CommandContext(s.Context(), "go", "build", "-o", path, "../../cmd/sandbox").CombinedOutput(); err != nil {
		s.Fatalf("building the sandbox: %v\n%s", err, output)
	}

	s.sandboxStart(path, true) // reads the program into the page cache

	s.rounds(func(s *scope) {
		for range sandboxStarts {
			with, withCPU := s.sandboxStart(path, true)
			without, withoutCPU := s.sandboxStart(path, false)

			const name = "start of the sandbox until ready, with the bundle provisioner"

			s.add(report.Figure{Name: name, Unit: "ms"}, milliseconds(with))
			s.add(report.Figure{Name: name + ", compared to without", Unit: "%", AtMost: 115}, percent(with, without))
			s.add(report.Figure{Name: name + ": CPU time, compared to without", Unit: "%", AtMost: 115}, percent(withCPU, withoutCPU))
		}
	})
}

func percent(value, of time.Duration) float64 { return 100 * value.Seconds() / of.Seconds() }

// sandboxStart starts the sandbox in an empty folder, and returns how long it takes to become ready and how much CPU time it uses
// until then.
func (s *scope) sandboxStart(path string, bundles bool) (took, cpu time.Duration) {
	ctx, cancel := context.WithTimeout(s.Context(), programTimeout)
	defer cancel()

	command := exec.CommandContext(ctx, path, "--bundler=exec sleep 60")
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "SANDBOX_DIR=" + filepath.Join(s.TempDir(), "sandbox"), fmt.Sprintf("SANDBOX_BUNDLES=%t", bundles)}
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = programTimeout

	for _, part := range []string{"BROKER", "PROVISIONER", "STATUS", "PROVISIONER_STATUS", "BUNDLES", "BUNDLES_STATUS"} {
		command.Env = append(command.Env, "SANDBOX_"+part+"_ADDRESS="+s.freeAddress())
	}

	output, err := command.StdoutPipe()
	s.check(err)

	start := time.Now()

	s.check(command.Start())

	lines := bufio.NewScanner(output)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "sandbox ready") {
	}

	took, cpu = time.Since(start), s.cpuOf(command.Process.Pid)

	s.check(lines.Err())
	s.check(command.Process.Signal(syscall.SIGTERM))

	for lines.Scan() { // Wait closes the pipe
	}

	s.check(command.Wait())

	return took, cpu
}
