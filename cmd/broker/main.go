// Command broker is an Open Service Broker API server whose service instances are Kubernetes runtimes. It reads
// its configuration from environment variables that start with APP_ (docs/operator/configuration.md) and runs
// until SIGTERM or SIGINT.
package main

import (
	"context"
	"os"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/config"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/logging"
)

func main() {
	os.Exit(lifecycle.Main(run, os.Stderr))
}

func run(ctx context.Context) error {
	settings, err := config.Read(config.Prefix, service.DefaultConfig(), os.Environ())
	if err != nil {
		return err
	}

	log, err := logging.New("broker", settings.LogLevel, os.Stderr)
	if err != nil {
		return err
	}

	broker, err := service.New(ctx, settings, log)
	if err != nil {
		return err
	}

	return broker.Run(ctx)
}
