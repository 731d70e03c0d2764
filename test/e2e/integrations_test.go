package e2e

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeavs"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeedp"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeias"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestDeletionLeavesNothing compares what the simulated upstreams hold before the creation of two instances, during their lives, and
// after their deletions.
func TestDeletionLeavesNothing(t *testing.T) {
	monitoring, platform, identity := fakeavs.New(), fakeedp.New(), fakeias.New()
	systems := []simulator.System{monitoring, platform, identity}
	server := httptest.NewServer(simulator.NewHandler(systems...))
	t.Cleanup(server.Close)

	e := harness.Start(t, harness.Options{ClusterCreation: 100 * time.Millisecond, Configure: func(c *service.Config, _ *provisioner.Config) {
		c.AvS = fakeavs.Config(server.URL + "/avs")
		c.AvS.Tags.Enabled = true
		c.Gardener.ShootDomain = "example.com"
		c.EDP.AuthURL, c.EDP.AdminURL, c.EDP.Namespace, c.EDP.Secret = server.URL+"/edp", server.URL+"/edp", fakeedp.Namespace, fakeedp.Secret
		c.IAS.URL, c.IAS.UserID, c.IAS.UserSecret = server.URL+"/ias", fakeias.User, fakeias.Secret
	}})
	client := harness.Client{TB: t, Endpoint: e.Broker.Endpoint}

	plans := map[string]string{"paid": harness.PlanAWS, "trial": harness.PlanTrial}
	for id, plan := range plans {
		identity.Add(id) // as the Kyma Environment Broker did
		client.Create(id, plan)
		client.WantSucceeded(id)
	}

	got := map[string]int{}

	for _, definition := range monitoring.Evaluations() {
		parts := strings.Split(definition.Name, "-")
		got[parts[3]+" of "+parts[4]] = len(definition.Tags)
	}

	// The fake garden has no seeds.
	if diff := cmp.Diff(map[string]int{"int of paid": 2, "ext of paid": 0, "int of trial": 2}, got); diff != "" {
		t.Errorf("tags of the evaluations: -want +got\n%s", diff)
	}

	for _, system := range systems {
		if len(system.Holds()) == 0 {
			t.Errorf("%s holds nothing, so the deletion proves nothing", system.Name())
		}
	}

	for id, plan := range plans {
		client.Delete(id, plan)
		client.WantGone(id)
	}

	for _, system := range systems {
		if left := system.Holds(); len(left) > 0 {
			t.Errorf("%s still holds %v", system.Name(), left)
		}
	}
}
