package e2e

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/clients/avs"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeavs"
	"github.com/environment-broker/environment-broker/process"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// upgrade orders an upgrade of the given kind and returns the response.
func (e env) upgrade(kind, id string, body operatorapi.Upgrade) operatorapi.AcceptedUpgrade {
	e.Helper()

	var accepted operatorapi.AcceptedUpgrade

	e.decode(e.Send(http.MethodPost, "/runtimes/"+id+"/"+kind, body, http.StatusAccepted).Raw, &accepted)

	return accepted
}

// ended waits until the operation with the given ID has ended, and returns it.
func (e env) ended(id string) operatorapi.Operation {
	e.Helper()

	var operation operatorapi.Operation

	e.Until("the end of the operation", func() bool {
		e.decode(e.Send(http.MethodGet, "/operations/"+id, nil, http.StatusOK).Raw, &operation)

		return process.State(operation.State).Terminal()
	})

	return operation
}

// wantUpgraded waits until the upgrade has ended, and fails the test unless it succeeded with the given description.
func (e env) wantUpgraded(accepted operatorapi.AcceptedUpgrade, description string) {
	e.Helper()

	if ended := e.ended(accepted.Operation); ended.State != operatorapi.OperationStateSucceeded || !strings.Contains(ended.Description, description) {
		e.Errorf("the upgrade %s: %s, %+v, want %q", ended.State, ended.Description, ended.Problem, description)
	}
}

// TestUpgradesOfInstances upgrades Kyma and the cluster of an instance, and checks that the platform sees neither.
func TestUpgradesOfInstances(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		e := start(t, database, 200*time.Millisecond, withReleases("1.0.0"))

		e.Create("mine", harness.PlanPreview)
		e.WantSucceeded("mine")

		planned := e.upgrade(environment.KindUpgradeKyma, "mine", operatorapi.Upgrade{Version: "1.1.0", DryRun: true})

		wantSteps := []string{
			"Upgrade_Kyma_Initialization", "Get_Kubeconfig", "Overrides_From_Secrets_And_Config_Step", "BusolaMigratorOverrides", "Upgrade_Kyma",
			"Check_Kyma", "Record_Upgrade",
		}
		if diff := cmp.Diff(wantSteps, planned.Steps); diff != "" {
			t.Errorf("planned steps, when the Provisioner installs Kyma and nothing else is connected: -want +got\n%s", diff)
		}

		e.wantUpgraded(planned, "Dry run, nothing was changed: Kyma would be upgraded from 1.0.0 to 1.1.0")
		e.wantModules("a dry run", "mine", "1.0.0", "eventing", "serverless")

		e.wantUpgraded(e.upgrade(environment.KindUpgradeKyma, "mine", operatorapi.Upgrade{Version: "1.1.0"}), "Kyma was upgraded to 1.1.0")
		e.wantModules("the new version with the modules of the user", "mine", "1.1.0", "eventing", "serverless")

		e.wantUpgraded(e.upgrade(environment.KindUpgradeCluster, "mine", operatorapi.Upgrade{Version: "1.36"}), "The cluster was upgraded to Kubernetes 1.36")

		if version := e.shoots()[0].Spec.Kubernetes.Version; !strings.HasPrefix(version, "1.36.") {
			t.Errorf("the Shoot has Kubernetes %s", version)
		}

		failed := e.ended(e.upgrade(environment.KindUpgradeKyma, "mine", operatorapi.Upgrade{Version: "9.9.9"}).Operation)
		if failed.State != operatorapi.OperationStateFailed || failed.Kind != environment.KindUpgradeKyma {
			t.Errorf("an upgrade to an unknown release: %s", failed.State)
		}

		e.wantModules("a failed upgrade", "mine", "1.1.0", "eventing", "serverless")
		e.WantSucceeded("mine") // last_operation, as the platform sees it

		e.Update("mine", map[string]any{"parameters": list("eventing")})
		e.WantSucceeded("mine")
		e.wantModules("an update keeps the upgraded version", "mine", "1.1.0", "eventing")

		refused := e.Send(http.MethodPost, "/runtimes/mine/upgradeCluster", operatorapi.Upgrade{Version: "1.34"}, http.StatusBadRequest)
		if !strings.Contains(refused.Text("description"), "cannot be downgraded") {
			t.Errorf("a downgrade: %s", refused.Raw)
		}

		e.Delete("mine", harness.PlanPreview)
		e.WantGone("mine")
	})
}

// TestDeletionDuringAnUpgrade deletes an instance while its cluster is being upgraded in a garden that never finishes the upgrade.
func TestDeletionDuringAnUpgrade(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		e := start(t, database, 200*time.Millisecond)

		e.Create("mine", harness.PlanAWS)
		e.WantSucceeded("mine")
		e.faults(harness.StuckClusters())

		upgrade := e.upgrade(environment.KindUpgradeCluster, "mine", operatorapi.Upgrade{Version: "1.36"})

		e.Until("the order at the Provisioner", func() bool { return strings.HasPrefix(e.shoots()[0].Spec.Kubernetes.Version, "1.36") })

		if state := e.runtime("mine").Status.State; state != operatorapi.RuntimeStateUpgrading {
			t.Errorf("the state of the runtime is %s", state)
		}

		e.Send(http.MethodPost, "/runtimes/mine/upgradeKyma", operatorapi.Upgrade{}, http.StatusConflict)
		e.Send(http.MethodPatch, harness.InstancePath("mine")+harness.Incomplete,
			map[string]any{"service_id": harness.ServiceID, "parameters": map[string]any{"autoScalerMax": 25}}, http.StatusUnprocessableEntity)
		e.WantSucceeded("mine")

		e.Delete("mine", harness.PlanAWS)
		e.wantUpgraded(upgrade, "Preempted: the runtime is being removed")
		e.faults(nil)
		e.WantGone("mine")

		if shoots := e.shoots(); len(shoots) != 0 {
			t.Errorf("%d Shoots remain", len(shoots))
		}
	})
}

// TestMaintenanceEndsWithACanceledUpgrade cancels an upgrade in a garden that never finishes it. The evaluations of the instance
// must be in maintenance during the upgrade and active afterwards.
func TestMaintenanceEndsWithACanceledUpgrade(t *testing.T) {
	t.Parallel()

	simulated := fakeavs.New()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	e := start(t, harness.SQLite, 200*time.Millisecond, func(broker *broker.Config, _ *provisioner.Config) {
		broker.AvS = fakeavs.Config(server.URL)
		broker.Gardener.ShootDomain = "example.com"
	})

	e.Create("mine", harness.PlanAWS)
	e.WantSucceeded("mine")
	e.faults(harness.StuckClusters())

	all := func(lifecycle avs.Lifecycle) func() bool {
		return func() bool {
			states := simulated.Lifecycles()
			for _, state := range states {
				if state != lifecycle {
					return false
				}
			}

			return len(states) > 0
		}
	}

	e.Until("an active evaluation", all(avs.Active))

	upgrade := e.upgrade(environment.KindUpgradeCluster, "mine", operatorapi.Upgrade{Version: "1.36"})

	e.Until("the maintenance", all(avs.Maintenance))
	e.Until("the order at the Provisioner", func() bool { return strings.HasPrefix(e.shoots()[0].Spec.Kubernetes.Version, "1.36") })
	e.intervene("cancel", upgrade.Operation, "the maintenance window is over")

	if ended := e.ended(upgrade.Operation); ended.State != operatorapi.OperationStateCanceled {
		t.Errorf("the upgrade is %s", ended.State)
	}

	e.Until("the end of the maintenance", all(avs.Active))
}
