// Command sandbox runs the broker, the Provisioner and the fake garden on one machine, to try them out and for development.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/sandbox"
)

func main() {
	programs := sandbox.Programs{Libraries: func(log logrus.FieldLogger) {
		logging.CaptureLibraries(log)
		program.WarnUnknown(log, sandbox.Prefix, sandbox.DefaultConfig(), os.Environ())
	}}

	os.Exit(program.Program[sandbox.Config]{
		Name: "sandbox", About: "a broker, a Provisioner and a garden on one machine, for a first look and for development",
		Prefix: sandbox.Prefix, Defaults: sandbox.DefaultConfig(),
		Flags: func(flags *flag.FlagSet) {
			flags.StringVar(&programs.Garden, "garden", "", "path of the `program` that runs the local garden; if empty, the sandbox uses the fake garden")
			flags.StringVar(&programs.Bundler, "bundler", "", "shell `command` that runs the bundle provisioner, such as 'exec bin/bundler'; without exec, it survives a SIGKILL of the sandbox. If empty, the sandbox does not run one")
		},
		Run: func(ctx context.Context, settings sandbox.Config) error {
			return sandbox.Run(ctx, settings, programs, os.Stdout)
		},
	}.Main())
}
