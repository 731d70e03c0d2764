// Command sandbox runs the broker, the Provisioner and a garden on one machine, for a first look and for development.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/environment-broker/environment-broker/internal/config"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/sandbox"
)

func main() {
	os.Exit(lifecycle.Main(run, os.Stderr))
}

func run(ctx context.Context) error {
	garden := flag.String("garden", "", "`program` of the local garden (default: the fake garden)")
	flag.Parse()

	settings, err := config.Read(sandbox.Prefix, sandbox.DefaultConfig(), os.Environ())
	if err != nil {
		return err
	}

	return sandbox.Run(ctx, settings, *garden, os.Stdout)
}
