// Command bundler runs the bundle provisioner: it unpacks Bundles, serves their content, and installs BundleDeployments. It reads its
// configuration from environment variables (docs/operator/configuration.md).
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/environment-broker/environment-broker/bundle/renderer/engines"
	"github.com/environment-broker/environment-broker/bundle/service"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
)

func main() {
	engines.Main()

	os.Exit(program.Program[service.Config]{
		Name: "bundler", About: "controllers that unpack Bundles, serve their content to authorized clients, and install it on clusters",
		Prefix: program.Prefix, Defaults: service.DefaultConfig(), Run: run,
	}.Main())
}

// run runs the service until the context ends. It returns an error if the configuration is invalid, or if one of the service's
// parts fails.
func run(ctx context.Context, settings service.Config) error {
	log, err := logging.New("bundler", settings.Log, os.Stderr)
	if err != nil {
		return fmt.Errorf("%s%w", program.Prefix, err)
	}

	logging.CaptureLibraries(log)
	program.WarnUnknown(log, program.Prefix, service.DefaultConfig(), os.Environ())

	settings.Rendering.Enabled = true

	bundler, err := service.New(ctx, settings, nil, log)
	if err != nil {
		return err
	}

	return lifecycle.Log(log, bundler.Run(ctx))
}
