package e2e

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/clients/notification"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakenotification"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// withNotifications starts a simulated notification service, and returns it with a function that makes a broker use it.
func withNotifications(t *testing.T) (*fakenotification.Service, func(*broker.Config, *provisioner.Config)) {
	t.Helper()

	simulated := fakenotification.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	return simulated, func(config *broker.Config, _ *provisioner.Config) {
		config.Notification = fakenotification.Config(server.URL)
	}
}

// TestNotifications checks the notifications for each way to upgrade instances, and that upgrades succeed while the notification
// service is unavailable.
func TestNotifications(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		simulated, configure := withNotifications(t)
		e := start(t, database, 200*time.Millisecond, withReleases("1.0.0"), configure)

		want := func(reason, id string, received ...string) {
			t.Helper()

			e.Until(reason, func() bool { return slices.Equal(simulated.Received()[id], received) })
		}

		e.Create("mine", harness.PlanPreview)
		e.WantSucceeded("mine")

		planned := e.upgrade(environment.KindUpgradeKyma, "mine", operatorapi.Upgrade{Version: "1.1.0", DryRun: true})
		e.wantUpgraded(planned, "Dry run")

		// The upgrade succeeds although the service rejects all calls.
		simulated.Inject(simulator.Fault{Status: 503, Times: -1})

		upgraded := e.upgrade(environment.KindUpgradeKyma, "mine", operatorapi.Upgrade{Version: "1.1.0"})
		e.wantUpgraded(upgraded, "Kyma was upgraded to 1.1.0")
		want("nothing is received during the outage", upgraded.Operation)
		simulated.Reset()
		want("an upgrade during an outage", upgraded.Operation, "create", "1", "2")

		kind, tenants := simulated.Tenants(upgraded.Operation)
		if mine := tenants["mine"]; kind != notification.Kyma || len(tenants) != 1 || mine.Start == "" || mine.End < mine.Start {
			t.Errorf("type %q, tenants %+v", kind, tenants)
		}

		failed := e.upgrade(environment.KindUpgradeKyma, "mine", operatorapi.Upgrade{Version: "9.9.9"})
		if ended := e.ended(failed.Operation); ended.State != operatorapi.OperationStateFailed {
			t.Errorf("the upgrade is %s", ended.State)
		}

		want("a failed upgrade", failed.Operation, "create", "1", "2")

		e.faults(harness.StuckClusters())

		canceled := e.upgrade(environment.KindUpgradeCluster, "mine", operatorapi.Upgrade{Version: "1.36"})
		want("the maintenance begins", canceled.Operation, "create", "1")
		e.intervene("cancel", canceled.Operation, "the maintenance window is over")
		want("a canceled upgrade", canceled.Operation, "create", "1", "cancel")

		e.faults(nil)

		if kind, _ := simulated.Tenants(canceled.Operation); kind != notification.Kubernetes {
			t.Errorf("the type is %q", kind)
		}

		if received := simulated.Received(); len(received) != 3 {
			t.Errorf("the dry run must send nothing: %v", received)
		}
	})
}

// TestNotificationsOfAPreemptedUpgrade deletes an instance during its upgrade, and checks that the announced maintenance ends.
func TestNotificationsOfAPreemptedUpgrade(t *testing.T) {
	t.Parallel()

	simulated, configure := withNotifications(t)
	e := start(t, harness.SQLite, 200*time.Millisecond, configure)

	e.Create("mine", harness.PlanAWS)
	e.WantSucceeded("mine")
	e.faults(harness.StuckClusters())

	upgrade := e.upgrade(environment.KindUpgradeCluster, "mine", operatorapi.Upgrade{Version: "1.36"})

	e.Until("the maintenance begins", func() bool { return slices.Equal(simulated.Received()[upgrade.Operation], []string{"create", "1"}) })
	e.Until("the order at the Provisioner", func() bool { return strings.HasPrefix(e.shoots()[0].Spec.Kubernetes.Version, "1.36") })
	e.Delete("mine", harness.PlanAWS)
	e.wantUpgraded(upgrade, "Preempted: the runtime is being removed")
	e.Until("the end of the maintenance", func() bool {
		return slices.Equal(simulated.Received()[upgrade.Operation], []string{"create", "1", "2"})
	})
	e.faults(nil)
	e.WantGone("mine")
}
