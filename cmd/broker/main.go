// Command broker runs the broker: an Open Service Broker API server whose service instances are Kubernetes
// runtimes. It reads its configuration from environment variables that start with APP_
// (docs/operator/configuration.md) and runs until it receives SIGTERM or SIGINT.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
)

func main() {
	os.Exit(program.Program[service.Config]{
		Name: "broker", About: "an Open Service Broker API server whose service instances are Kubernetes runtimes",
		Prefix: program.Prefix, Defaults: service.DefaultConfig(), Run: run,
		Commands: []program.Command[service.Config]{service.AdoptCommand()},
	}.Main())
}

func run(ctx context.Context, settings service.Config) error {
	log, err := logging.New("broker", settings.Log, os.Stderr)
	if err != nil {
		return fmt.Errorf("%s%w", program.Prefix, err)
	}

	logging.CaptureLibraries(log)
	program.WarnUnknown(log, program.Prefix, service.DefaultConfig(), os.Environ())

	broker, err := service.New(ctx, settings, log)
	if err != nil {
		return err
	}

	return lifecycle.Log(log, broker.Run(ctx))
}
