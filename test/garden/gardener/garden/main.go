// Command garden is the local garden: it runs etcd, kube-apiserver and Gardener's API server on free ports of the loopback
// interface, seeds a project and simulates the gardenlet. Its users need only the kubeconfig whose path it prints.
//
// The servers are executables of their own, which test/garden/build.sh builds. The command starts them, stops them on SIGINT or
// SIGTERM, and fails if one of them ends. A garden that is started again in the same folder continues with its objects and
// addresses.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/localgarden"
)

// The exit codes of the command. A stop by a signal is a success.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	os.Exit(run(os.Args[1:]))
}

// run runs a garden until SIGINT or SIGTERM and returns the exit code. Standard output has only the line with the kubeconfig;
// messages go to standard error.
func run(arguments []string) int {
	config, err := localgarden.Parse(arguments, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "garden:", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	log, err := logging.New("garden", logging.DefaultConfig(), os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "garden:", err)
		return exitFailure
	}
	if err := localgarden.Run(ctx, config, os.Stdout, log); err != nil {
		log.WithError(err).Error("the garden failed")
		return exitFailure
	}
	log.Info("the garden has stopped")
	return 0
}
