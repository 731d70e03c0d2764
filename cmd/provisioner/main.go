// Command provisioner runs the Provisioner: a GraphQL API that creates, changes and removes runtimes through Gardener. With the
// argument adopt, it instead takes over the runtimes of Kyma Provisioner. It reads its configuration from environment variables
// (docs/operator/configuration.md).
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/provisioner/service"
)

func main() {
	os.Exit(program.Program[service.Config]{
		Name: "provisioner", About: "a GraphQL API that creates, changes and removes Kubernetes runtimes through Gardener",
		Prefix: program.Prefix, Defaults: service.DefaultConfig(), Run: run,
		Commands: []program.Command[service.Config]{service.AdoptCommand()},
	}.Main())
}

// run runs the service until the context ends. It returns an error if the configuration is invalid, or if one of the service's
// parts fails.
func run(ctx context.Context, settings service.Config) error {
	log, err := logging.New("provisioner", settings.Log, os.Stderr)
	if err != nil {
		return fmt.Errorf("%s%w", program.Prefix, err)
	}

	logging.CaptureLibraries(log)
	program.WarnUnknown(log, program.Prefix, service.DefaultConfig(), os.Environ())

	provisioner, err := service.New(ctx, settings, nil, log)
	if err != nil {
		return err
	}

	return lifecycle.Log(log, provisioner.Run(ctx))
}
