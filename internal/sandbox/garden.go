package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
)

const (
	// gardenReady is the text that the local garden prints before the path of its kubeconfig.
	gardenReady = "garden ready kubeconfig="
	// gardenStart is how long the local garden may take to start, even on a slow machine.
	gardenStart = 3 * time.Minute
	// gardenStop is how long the local garden may take to stop before it is killed.
	gardenStop = 20 * time.Second
)

// openGarden is a garden that accepts calls. The lifecycle.Part returned with it runs the fake garden's gardenlet, or waits until
// the local garden exits.
type openGarden struct {
	client client.WithWatch
	// config is the connection to the fake garden. kubeconfig is the path of the local garden's kubeconfig. Only one of them is set.
	config     *rest.Config
	kubeconfig string
}

// memoryGarden opens the fake garden in config.Dir/garden. Services can use the returned client immediately. The returned part
// runs the gardenlet. Until the part runs, new Shoots are not processed.
func memoryGarden(ctx context.Context, config Config, log logrus.FieldLogger) (openGarden, lifecycle.Part, error) {
	memory, err := fakegarden.Open(ctx, fakegarden.Options{
		Dir: filepath.Join(config.Dir, "garden"), ClusterCreation: config.ClusterCreation, Log: log.WithField("service", "garden"),
	})
	if err != nil {
		return openGarden{}, lifecycle.Part{}, err
	}

	return openGarden{client: memory.Client(), config: memory.Config()}, lifecycle.Part{Name: "garden", Run: memory.Run}, nil
}

// localGarden starts the local garden and waits until it is ready. The returned part stops the garden when the part's context
// ends. log receives the garden's log. The local and the fake garden store their data in different folders, so users can switch
// between the two gardens and each keeps its own clusters.
func localGarden(ctx context.Context, program string, config Config, log io.Writer) (openGarden, lifecycle.Part, error) {
	process := &gardenProcess{
		log: log, ready: make(chan string, 1), ended: make(chan error, 1), stop: make(chan struct{}),
	}

	go process.run(program, config)

	part := lifecycle.Part{Name: "garden", Run: process.wait}

	select {
	case kubeconfig := <-process.ready:
		api, err := gardener.Connect(kubeconfig)

		return openGarden{client: api, kubeconfig: kubeconfig}, part, err
	case err := <-process.ended:
		return openGarden{}, part, fmt.Errorf("the garden exited before it was ready: %w", err)
	case <-time.After(gardenStart):
		close(process.stop)

		return openGarden{}, part, fmt.Errorf("the garden was not ready within %s", gardenStart)
	case <-ctx.Done():
		close(process.stop)

		return openGarden{}, part, errors.Join(ctx.Err(), <-process.ended)
	}
}

// gardenProcess is the running local garden. Only run and the goroutines that it starts use the process; other methods
// communicate with them through the channels.
type gardenProcess struct {
	log io.Writer
	// ready receives the path of the kubeconfig, and ended receives the error with which the program exited. Each receives one
	// value and has a buffer, so run never blocks.
	ready chan string
	ended chan error
	// Closing stop stops the program.
	stop chan struct{}
}

// run starts the program and waits for it on a locked OS thread. Linux kills the program when the thread that started it ends, so
// the program does not outlive a killed sandbox.
func (g *gardenProcess) run(program string, config Config) {
	runtime.LockOSThread()

	command := exec.Command(program, //nolint:noctx // the user chooses the program; a signal stops it
		"--dir", filepath.Join(config.Dir, "garden-real"),
		"--cluster-creation", config.ClusterCreation.String())
	command.Stderr = g.log
	command.SysProcAttr = attributes()

	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}

	if err != nil {
		g.ended <- fmt.Errorf("starting %s: %w", program, err)

		return
	}

	go func() {
		<-g.stop

		_ = command.Process.Signal(syscall.SIGTERM) // it fails only if the program has exited
		time.AfterFunc(gardenStop, func() { _ = command.Process.Kill() })
	}()

	for lines := bufio.NewScanner(output); lines.Scan(); {
		if path, found := strings.CutPrefix(lines.Text(), gardenReady); found {
			g.ready <- path
		}
	}

	g.ended <- command.Wait()
}

// wait waits until the program exits, or stops it when the context ends. If the program exits earlier, wait returns an error,
// because the services cannot work without a garden. A program that does not stop within gardenStop is killed, so wait always
// returns.
func (g *gardenProcess) wait(ctx context.Context) error {
	select {
	case err := <-g.ended:
		return fmt.Errorf("the garden exited unexpectedly: %w", err)
	case <-ctx.Done():
		close(g.stop)

		// Any exit code is acceptable, because the program was asked to stop.
		if err := <-g.ended; err != nil && !isExit(err) {
			return err
		}

		return nil
	}
}

// isExit reports whether err means that the program exited with an error code or was ended by a signal, rather than that it could
// not be started or waited for.
func isExit(err error) bool {
	_, exited := errors.AsType[*exec.ExitError](err)

	return exited
}
