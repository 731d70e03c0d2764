package program_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/program"
)

// tested is the configuration of the tested program.
type tested struct {
	Address string `env:"ADDRESS" help:"host and port"`
	Limit   int    `env:"LIMIT"   help:"highest number"`
}

func TestMain(t *testing.T) {
	cases := map[string]struct {
		reason      string
		arguments   []string
		environment []string
		wantCode    int
		wantOutput  []string
		wantError   string
		wantRun     string
	}{
		"help": {
			reason: "the help needs no valid configuration", arguments: []string{"--help"}, environment: []string{"APP_LIMIT=no"},
			wantOutput: []string{
				"demo is a test.", "--help", "--version", "--garden program\n    \tthe garden", "APP_ADDRESS (default here:1)\n    \thost and port",
				"APP_LIMIT (default 0)",
			},
		},
		"short help": {reason: "people also type -h", arguments: []string{"-h"}, wantOutput: []string{"Usage: demo [flags]"}},
		"version": {
			reason: "the version needs no valid configuration", arguments: []string{"--version"}, environment: []string{"APP_LIMIT=no"},
			wantOutput: []string{"demo (devel) (commit unknown, go1."},
		},
		"run": {reason: "the configuration comes from the environment", environment: []string{"APP_ADDRESS=there:2"}, wantRun: "there:2"},
		"flag": {
			reason: "a program can have additional flags", arguments: []string{"--garden=g"}, wantRun: "here:1 g",
		},
		"invalid variable": {
			reason: "the error names the variable", environment: []string{"APP_LIMIT=no"}, wantCode: 1, wantError: "APP_LIMIT: the value is not valid: write an integer",
		},
		"failure": {reason: "the error is written", environment: []string{"APP_ADDRESS=fail"}, wantCode: 1, wantRun: "fail", wantError: "broken\n"},
		"unknown flag": {
			reason: "the program does not start", arguments: []string{"--port"}, wantCode: 2,
			wantError: "demo: flag provided but not defined: -port\nrun demo --help\n",
		},
		"argument": {
			reason: "the programs have no subcommands", arguments: []string{"help"}, wantCode: 2,
			wantError: "demo: unexpected argument \"help\"\nrun demo --help\n",
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var (
				output, failures bytes.Buffer
				garden, ran      string
			)

			demo := program.Program[tested]{
				Name: "demo", About: "a test", Prefix: "APP_", Defaults: tested{Address: "here:1"},
				Flags: func(flags *flag.FlagSet) { flags.StringVar(&garden, "garden", "", "the garden `program`") },
				Run: func(_ context.Context, settings tested) error {
					ran = strings.TrimSpace(settings.Address + " " + garden)
					if settings.Address == "fail" {
						return errors.New("broken")
					}

					return nil
				},
			}

			if code := demo.MainWith(c.arguments, c.environment, &output, &failures); code != c.wantCode || ran != c.wantRun {
				t.Errorf("%s: exit code %d after running %q, want %d after %q", c.reason, code, ran, c.wantCode, c.wantRun)
			}

			for _, want := range c.wantOutput {
				if !strings.Contains(output.String(), want) {
					t.Errorf("%s: want %q in\n%s", c.reason, want, output.String())
				}
			}

			if c.wantOutput == nil && output.Len() > 0 {
				t.Errorf("%s: the output is %q", c.reason, output.String())
			}

			if c.wantError == "" && failures.Len() > 0 || !strings.Contains(failures.String(), c.wantError) {
				t.Errorf("%s: got the error %q, want %q", c.reason, failures.String(), c.wantError)
			}
		})
	}
}

// TestCommand runs a command with variables of its program.
func TestCommand(t *testing.T) {
	cases := map[string]struct {
		reason      string
		environment []string
		wantCode    int
		wantOutput  string
		wantError   string
	}{
		"run": {reason: "a command has the variables of its program", environment: []string{"APP_ADDRESS=there:2"}, wantOutput: "there:2"},
		"misspelled variable": {
			reason: "the warnings of the program apply to its commands", environment: []string{"APP_ADDRESSES=there:2", "APP_LIMITS=3"},
			wantOutput: "here:1",
			wantError: "demo adopt: unknown environment variable APP_ADDRESSES has no effect; did you mean \"APP_ADDRESS\"?\n" +
				"demo adopt: unknown environment variable APP_LIMITS has no effect; did you mean \"APP_LIMIT\"?\n",
		},
		"invalid variable": {
			reason: "the command does not start", environment: []string{"APP_LIMIT=no"}, wantCode: 1,
			wantError: "reading the configuration: APP_LIMIT: the value is not valid: write an integer\n",
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var output, failures bytes.Buffer

			demo := program.Program[tested]{
				Name: "demo", About: "a test", Prefix: "APP_", Defaults: tested{Address: "here:1"},
				Run: func(context.Context, tested) error { return errors.New("the program runs instead of its command") },
				Commands: []program.Command[tested]{{
					Name: "adopt", About: "adopts", Flags: func(*flag.FlagSet) {},
					Run: func(_ context.Context, settings tested, output io.Writer) error {
						_, err := io.WriteString(output, settings.Address)

						return err
					},
				}},
			}

			code := demo.MainWith([]string{"adopt"}, c.environment, &output, &failures)
			if code != c.wantCode || output.String() != c.wantOutput || failures.String() != c.wantError {
				t.Errorf("%s: exit code %d, output %q, errors %q; want %d, %q, %q", c.reason, code, output.String(), failures.String(),
					c.wantCode, c.wantOutput, c.wantError)
			}
		})
	}
}
