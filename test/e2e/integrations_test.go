package e2e

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/clients/gardenclient"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeavs"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecleanup"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeedp"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeias"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestDeletionLeavesNothing compares what the simulated upstreams store before the creation of a tenant's three instances, while
// they exist, and after their deletions. In each case, a different system installs Kyma.
func TestDeletionLeavesNothing(t *testing.T) {
	for name, c := range kymaInstallers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testDeletionLeavesNothing(t, c)
		})
	}
}

func testDeletionLeavesNothing(t *testing.T, c kymaInstaller) {
	t.Helper()

	monitoring, platform, identity := fakeavs.New(), fakeedp.New(), fakeias.New()
	systems := []simulator.System{monitoring, platform, identity, fakecleanup.New()}
	holding := systems[:3:3]

	if c.installer != nil {
		systems, holding = append(systems, c.installer), append(holding, c.installer)
	}

	server := httptest.NewServer(simulator.NewHandler(systems...))
	t.Cleanup(server.Close)

	director, directorSettings := newDirector(t)
	e := prepare(t, harness.SQLite, 100*time.Millisecond, c.configure, func(config *service.Config, p *provisioner.Config) {
		c.use(t, config, server.URL)
		useUpstreams(config, server.URL)

		if c.installer != nil { // the Provisioner waits for an agent after an installation
			p.Director = directorSettings
		}
	})
	e.usePool(server.URL + "/cleanup")

	account := poolAccount(harness.GardenNamespace(), 1) // the account of the trial instance
	account.Labels[gardenclient.LabelType], account.Provider.Type = "azure", "azure"

	if err := e.services.Garden.Client().Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}

	e.startBroker()

	plans := map[string]string{"paid": harness.PlanAWS, "kyma": harness.PlanPreview, "trial": harness.PlanTrial}
	for id, plan := range plans {
		identity.Add(id) // as the Kyma Environment Broker did
		e.Create(id, plan)
	}

	got := map[string]int{}

	for id := range plans {
		e.WantSucceeded(id)
	}

	for _, definition := range monitoring.Evaluations() {
		parts := strings.Split(definition.Name, "-")
		got[parts[3]+" of "+parts[4]] = len(definition.Tags)
	}

	// The fake garden has no seeds.
	want := map[string]int{"int of paid": 2, "ext of paid": 0, "int of kyma": 2, "ext of kyma": 0, "int of trial": 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tags of the evaluations: -want +got\n%s", diff)
	}

	for _, system := range holding {
		if len(system.Holds()) == 0 {
			t.Errorf("%s holds nothing, so the deletion proves nothing", system.Name())
		}
	}

	if clusters, runtimes := len(e.shoots()), len(director.Runtimes()); clusters != len(plans) || c.installer != nil && runtimes != len(plans) {
		t.Errorf("Gardener has %d clusters and Director %d runtimes, so the deletion proves nothing", clusters, runtimes)
	}

	for id, plan := range plans {
		e.Delete(id, plan)
	}

	for id := range plans {
		e.WantGone(id)
	}

	for _, system := range systems {
		if left := system.Holds(); len(left) > 0 {
			t.Errorf("%s still holds %v", system.Name(), left)
		}
	}

	if clusters, runtimes := e.shoots(), director.Runtimes(); len(clusters) > 0 || len(runtimes) > 0 {
		t.Errorf("Gardener still has %d clusters, and Director the runtimes %v", len(clusters), runtimes)
	}

	for _, account := range poolAccounts(t, e.services.Garden.Client(), e.services.Garden.Namespace()) {
		if account.Labels[gardenclient.LabelDirty] != "true" {
			t.Errorf("the account %s waits for no cleanup: %v", account.Name, account.Labels)
		}
	}

	if left := strings.TrimSpace(e.ebctl("instance", "list", "--leftovers")); left != "Nothing is left over." {
		t.Errorf("leftovers: %s", left)
	}
}
