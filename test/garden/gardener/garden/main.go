// Command garden is the local garden: it runs etcd, kube-apiserver and Gardener's API server on free ports of the loopback
// interface, seeds a project and simulates the gardenlet. Its users need only the kubeconfig whose path it prints.
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

const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	os.Exit(run(os.Args[1:]))
}

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

	log, err := logging.New("garden", "info", os.Stderr)
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
