package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// Spec says what to run.
type Spec struct {
	// Name is what messages call the process.
	Name string
	// Path is its executable.
	Path string
	Args []string
	// Env is added to the environment of the garden.
	Env []string
	// Log is the file that takes what the process prints. The log of the start before is kept beside it, with previousLog behind its name.
	Log string
}

// Child is a process that was started.
type Child struct {
	spec   Spec
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // why it ended; to be read once exited is closed
}

// Start starts a process and returns as soon as it runs; whether it is ready is for the caller to find out.
func Start(spec Spec) (*Child, error) {
	log, err := openLog(spec.Log)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", spec.Name, err)
	}
	defer log.Close() // The child has a descriptor of its own.

	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes()

	c := &Child{spec: spec, cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go c.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	return c, nil
}

// run starts the process and waits for its end on one operating system thread, because Linux sends the parent's death signal when
// the thread ends that started the child.
func (c *Child) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	err := c.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	c.err = c.cmd.Wait()
	close(c.exited)
}

// Exited is closed when the process has ended.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Err says how the process ended and what it said last. It may be called once Exited is closed.
func (c *Child) Err() error {
	reason := c.err
	if reason == nil {
		reason = errors.New("exit status 0")
	}
	return fmt.Errorf("%s ended: %w; the end of %s:\n%s", c.spec.Name, reason, c.spec.Log, lastLines(c.spec.Log))
}

// Stop asks the process to end and waits until it has; when ctx ends first, the process is killed.
func (c *Child) Stop(ctx context.Context) error {
	if err := c.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.exited:
		return nil
	case <-ctx.Done():
		return c.Kill()
	}
}

// Kill ends the process without asking it, and waits until it is gone.
func (c *Child) Kill() error {
	if err := c.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-c.exited
	return nil
}

func (c *Child) signal(signal os.Signal) error {
	if err := c.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s: %w", signal, c.spec.Name, err)
	}
	return nil
}

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := os.Rename(path, path+previousLog); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.Create(path)
}
