package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

const (
	// previousLog is the suffix for the log of the previous start, which can show the reason for a crash.
	previousLog = ".previous"
	// tailLines and tailBytes limit how much of a log an error message quotes.
	tailLines = 5
	tailBytes = 4096
)

// Spec describes a process. Name, Path and Log are required.
type Spec struct {
	// Name identifies the process in messages.
	Name string
	// Path is the path of the executable. PATH is not searched.
	Path string
	Args []string
	// Env contains additional environment variables. The process also inherits the environment of the garden.
	Env []string
	// Log is the file for standard output and standard error. The log of the previous start is renamed with the suffix .previous.
	Log string
}

// Process is a started process. Its methods are safe for concurrent use.
type Process struct {
	spec   Spec
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // how the process exited; set before exited is closed
}

// Start starts a process and returns when the process is running; use WaitReady to wait until it is ready. The caller must end it
// with Stop or Kill.
func Start(spec Spec) (*Process, error) {
	log, err := openLog(spec.Log)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", spec.Name, err)
	}
	defer log.Close() // the process has its own descriptor
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes()
	p := &Process{spec: spec, cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	return p, nil
}

// run starts the process and waits for it. It runs on a locked OS thread, because Linux sends the parent death signal as soon as
// the thread that started the process ends.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.exited)
}

// Exited returns a channel that is closed when the process has exited.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Err returns how the process exited, with the end of its log. It is never nil: servers run until they are stopped, so even exit
// status 0 is an error. Call it only after Exited is closed.
func (p *Process) Err() error {
	reason := p.err
	if reason == nil {
		reason = errors.New("exit status 0")
	}
	return fmt.Errorf("%s ended: %w; the end of %s:\n%s", p.spec.Name, reason, p.spec.Log, lastLines(p.spec.Log))
}

// WaitReady calls probe repeatedly until it returns nil. It returns an error if the process exits or the context ends first.
func (p *Process) WaitReady(ctx context.Context, probe func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.exited:
			cancel(p.Err())
		case <-ctx.Done():
		}
	}()
	return Until(ctx, p.spec.Name+" is ready (its log is "+p.spec.Log+")", probe)
}

// Stop sends SIGTERM and waits until the process has exited. If the context ends first, Stop kills the process. It is not an
// error if the process has already exited.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return p.Kill()
	}
}

// Kill sends SIGKILL and waits until the process has exited.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.exited
	return nil
}

// signal sends a signal, or does nothing if the process has already exited.
func (p *Process) signal(signal os.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s: %w", signal, p.spec.Name, err)
	}
	return nil
}

// openLog creates a log file and its folder. It renames the log of the previous start.
func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := os.Rename(path, path+previousLog); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.Create(path)
}

// lastLines returns the end of a log for an error message, limited to tailLines and tailBytes. If the log cannot be read, it
// returns the read error as text.
func lastLines(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("(the log cannot be read: %v)", err)
	}
	content = content[max(0, len(content)-tailBytes):]
	lines := bytes.Split(bytes.TrimRight(content, "\n"), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-tailLines):], []byte("\n")))
}
