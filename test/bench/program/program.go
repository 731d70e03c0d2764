package program

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
)

const (
	// startTimeout limits the time until a program is ready, stopTimeout until it has ended.
	startTimeout = time.Minute
	stopTimeout  = time.Minute
	// pollInterval is the time between two readiness checks: short, because start times are measured.
	pollInterval = 2 * time.Millisecond
)

// Options configure a program.
type Options struct {
	Path      string
	Arguments []string
	// Environment is the whole environment of the program: it inherits nothing.
	Environment []string
	// Log is the file to which its output is appended.
	Log string
	// Ready is a URL that returns 200 once the program is ready.
	Ready string
}

// Program is a running program.
type Program struct {
	// Started is the start time, StartTook the time from there until the program was ready.
	Started   time.Time
	StartTook time.Duration

	command *exec.Cmd
	log     string
	ended   chan struct{}
	err     error
	killed  bool
}

// Start runs a program and waits until it is ready, at most a minute. A program that is not ready by then is killed. The context bounds the
// wait only, not the program.
func Start(ctx context.Context, options Options) (*Program, error) {
	log, err := os.OpenFile(options.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", options.Path, err)
	}
	defer log.Close()

	command := exec.Command(options.Path, options.Arguments...)
	command.Env, command.Stdout, command.Stderr = options.Environment, log, log

	p := &Program{command: command, log: options.Log, ended: make(chan struct{}), Started: time.Now()}

	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", options.Path, err)
	}

	go func() {
		p.err = command.Wait()
		close(p.ended)
	}()

	if err := p.waitUntilReady(ctx, options.Ready); err != nil {
		p.Kill()

		return nil, err
	}

	p.StartTook = time.Since(p.Started)

	return p, nil
}

// waitUntilReady polls the URL until it returns 200, and fails early if the program ends.
func (p *Program) waitUntilReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	client := &http.Client{}
	defer client.CloseIdleConnections()

	tick := time.NewTicker(pollInterval)
	defer tick.Stop()

	for {
		if answers(ctx, client, url) {
			return nil
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w", p.command.Path, ctx.Err())
		case <-p.ended:
			return fmt.Errorf("%s has ended: %w\n%s", p.command.Path, errors.Join(p.err), p.Tail())
		case <-tick.C:
		}
	}
}

func answers(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}

	response, err := client.Do(request)
	if err != nil {
		return false
	}

	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// Stop terminates the program and waits for its end. It does nothing if the program has ended already.
func (p *Program) Stop() error {
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended

	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		p.Kill()

		return fmt.Errorf("%s did not end within %s", p.command.Path, stopTimeout)
	}

	if p.err != nil && !p.killed {
		return fmt.Errorf("%s: %w\n%s", p.command.Path, p.err, p.Tail())
	}

	return nil
}

// Kill sends SIGKILL and waits until the program has ended.
func (p *Program) Kill() {
	p.killed = true
	_ = p.command.Process.Kill() // it may have ended
	<-p.ended
}

// Tail returns the last lines of the program's log.
func (p *Program) Tail() string {
	const lines = 20

	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}

	all := strings.Split(strings.TrimSpace(string(content)), "\n")

	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// FreeAddress returns a free loopback address that no other call returns.
func FreeAddress(ctx context.Context) (string, error) {
	port, err := freeport.Draw(ctx)
	if err != nil {
		return "", fmt.Errorf("finding a free address: %w", err)
	}

	return freeport.Address(port), nil
}
