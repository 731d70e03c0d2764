//go:build garden

package e2e

import (
	"bytes"
	"flag"
	"net/http"
	"strings"
	"testing"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/sandbox/kymarows"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/storage/takeover"
	"github.com/environment-broker/environment-broker/test/harness"
)

// takeOverPage is the path of the page about `provisioner adopt`.
const takeOverPage = "docs/operator/take-over.md"

// pageRuntime is the ID of an adopted Shoot on the page. The actual ID is derived from the Shoot's UID, which differs in each
// garden.
const pageRuntime = "0b8f0ab5-1a0f-5d0c-8f52-6a2c6dd3cbb0"

// TestOutputOfTakeOverPage runs the dry runs shown in docs/operator/take-over.md and compares their output with the page. With the
// -update flag, it writes the output to the page.
func TestOutputOfTakeOverPage(t *testing.T) {
	t.Parallel()

	a := newAdoption(t, 0)
	for number := range 3 {
		cluster := a.example(number)

		if err := a.apply(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}

		a.await(cluster.Name)

		if number == 2 {
			continue // without a row
		}

		instance := kymarows.ExampleInstance(cluster)
		if number == 1 {
			instance.Parameters["region"] = "northcentralus"
		}

		a.former.Insert(cluster)
		a.keb.InsertInstance(instance)
	}

	foreign := a.foreign(2)
	harness.Until(a, "the creation of a Shoot", func() bool { return a.garden.Create(t.Context(), foreign) == nil })
	a.await(foreign.Name)

	page := newListings(t, takeOverPage, map[string]string{
		"dsn": a.former.URL.Reveal(), "key": kymarows.Key.Reveal(), "keb-dsn": a.keb.URL.Reveal(), "keb-key": kymarows.Key.Reveal(),
	})

	page.want("provisioner adopt --dry-run", func(args []string) string { return runCommand(t, provisioner.AdoptCommand(), a.settings, args[1:]) })

	a.run(takeover.Options{})

	settings := harness.BrokerSettings(harness.Postgres(t, "broker"))
	settings.Provisioner.URL, _ = harness.StartProvisioner(t, a.garden, a.settings, logging.Discard())

	page.want("broker adopt --dry-run", func(args []string) string { return runCommand(t, broker.AdoptCommand(), settings, args[1:]) })

	client := newPlatform(t, harness.StartBroker(t, settings, logging.Discard()).URL)
	found, _ := adoptShoot(client.Client, foreign.Name, operatorapi.ShootAdoption{Account: "ga-1", Plan: "gcp", DryRun: true}, http.StatusOK)

	page.want("ebctl adopt shoot", func(args []string) string {
		return strings.ReplaceAll(client.ebctl(args...), found.RuntimeID, pageRuntime)
	})
}

// runCommand runs a command of a service with its flags, and returns its output.
func runCommand[Config any](t *testing.T, command program.Command[Config], settings Config, args []string) string {
	t.Helper()

	flags := flag.NewFlagSet(command.Name, flag.ContinueOnError)
	command.Flags(flags)

	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}

	var output bytes.Buffer
	if err := command.Run(t.Context(), settings, &output); err != nil {
		t.Fatal(err)
	}

	return output.String()
}
