// Command provisioner runs the Provisioner: a GraphQL API that creates, changes and removes runtimes through Gardener. It has no
// flags; environment variables configure it, see docs/operator/configuration.md.
package main

import (
	"context"
	"os"

	"github.com/environment-broker/environment-broker/internal/config"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/provisioner/service"
)

func main() {
	os.Exit(lifecycle.Main(run, os.Stderr))
}

// run serves until the context ends. It returns an error if the configuration is invalid or a part of the service fails.
func run(ctx context.Context) error {
	settings, err := config.Read(config.Prefix, service.DefaultConfig(), os.Environ())
	if err != nil {
		return err
	}

	log, err := logging.New("provisioner", settings.LogLevel, os.Stderr)
	if err != nil {
		return err
	}

	provisioner, err := service.New(ctx, settings, nil, log)
	if err != nil {
		return err
	}

	return provisioner.Run(ctx)
}
