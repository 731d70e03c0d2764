// Command garden is the local garden: it runs etcd, kube-apiserver and Gardener's API server on free loopback ports, creates
// projects and simulates their gardenlets. It prints the path of a kubeconfig, with which clients connect to the garden.
//
// The servers are separate executables, which test/garden/build.sh builds. The command starts them, stops them after SIGINT or
// SIGTERM, and fails if one of them exits. A garden that is started again in the same folder continues with its objects and
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

// Exit codes of the command. After SIGINT or SIGTERM, the command exits with code 0.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	os.Exit(run(os.Args[1:]))
}

// run runs a garden until SIGINT or SIGTERM and returns the exit code. It prints only the line with the kubeconfig to standard
// output, and messages to standard error.
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
