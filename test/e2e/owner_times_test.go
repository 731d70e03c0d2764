package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/resources"
	"github.com/environment-broker/environment-broker/test/harness"
)

// withWindow gives all instances a maintenance window of one hour, which begins after the given number of hours.
func withWindow(t *testing.T, hours int) func(*broker.Config, *provisioner.Config) {
	t.Helper()

	folder := filepath.Join(t.TempDir(), "catalog")
	if err := os.CopyFS(folder, resources.Catalog()); err != nil {
		t.Fatal(err)
	}

	begin := time.Now().UTC().Add(time.Duration(hours) * time.Hour)

	file, err := os.OpenFile(filepath.Join(folder, "catalog.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := fmt.Fprintf(file, "\nmaintenancePolicy: {default: {timeBegin: %q, timeEnd: %q, timeZone: UTC}}\n",
		begin.Format("15:04"), begin.Add(time.Hour).Format("15:04")); err != nil {
		t.Fatal(err)
	}

	if err := file.Close(); err != nil {
		t.Fatal(err)
	}

	return func(broker *broker.Config, _ *provisioner.Config) { broker.Catalog.Dir = folder }
}

// targetsOf returns the targets of an orchestration by instance.
func (e env) targetsOf(id string) map[string]operatorapi.OrchestrationOperation {
	e.Helper()

	var list operatorapi.OrchestrationOperationList

	e.decode(e.Send(http.MethodGet, "/orchestrations/"+id+"/operations", nil, http.StatusOK).Raw, &list)

	targets := map[string]operatorapi.OrchestrationOperation{}
	for _, target := range list.Data {
		targets[target.InstanceID] = target
	}

	return targets
}

// TestOwnerTimesOfAnOrchestration orders an upgrade in maintenance windows that begin hours later. The platform chooses a time for one
// instance, and an operator for another. Both upgrades must start at these times, outside the window. The third upgrade must wait
// until the orchestration is canceled.
func TestOwnerTimesOfAnOrchestration(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		e := start(t, database, 200*time.Millisecond, withWindow(t, 6))
		instances := []string{"platform", "operator", "window"}

		for _, id := range instances {
			e.Create(id, harness.PlanAWS)
		}

		for _, id := range instances {
			e.WantSucceeded(id)
		}

		deadline := time.Now().Add(48 * time.Hour)
		id := e.orchestrate("/upgrade/cluster", map[string]any{
			"targets": map[string]any{"include": []any{map[string]any{"target": "all"}}},
			"strategy": map[string]any{
				"maintenanceWindow": true, "deadline": deadline.UTC().Format(time.RFC3339), "parallel": map[string]any{"workers": 3},
			},
		}, http.StatusAccepted)

		e.Until("the targets are planned", func() bool { return len(e.targetsOf(id)) == len(instances) })

		for name, target := range e.targetsOf(id) {
			if target.State != "pending" || time.Until(target.MaintenanceWindowBegin) < 4*time.Hour {
				t.Errorf("%s is %s, its window begins at %s", name, target.State, target.MaintenanceWindowBegin)
			}
		}

		late := map[string]any{"time": deadline.Add(time.Hour).UTC().Format(time.RFC3339)}
		e.Send(http.MethodPost, "/runtimes/operator/upgradeTime", late, http.StatusBadRequest)

		at := time.Now().Add(2 * time.Second).UTC().Truncate(time.Second)
		chosen := at.Format(time.RFC3339)

		e.Send(http.MethodPatch, harness.InstancePath("platform")+harness.Incomplete,
			map[string]any{"service_id": harness.ServiceID, "parameters": map[string]any{"upgradeTime": chosen}}, http.StatusOK)
		e.Send(http.MethodPost, "/runtimes/operator/upgradeTime", map[string]any{"time": chosen}, http.StatusOK)

		for name, by := range map[string]string{"platform": "default", "operator": harness.User} {
			e.Until("the upgrade of "+name+" has succeeded", func() bool { return e.targetsOf(id)[name].State == "succeeded" })

			target := e.targetsOf(id)[name]
			if !target.ChosenAt.Equal(at) || target.ChosenBy != by {
				t.Errorf("the time of %s is %s, chosen by %q", name, target.ChosenAt, target.ChosenBy)
			}

			var upgrade operatorapi.Operation

			e.decode(e.Send(http.MethodGet, "/operations/"+target.OperationID, nil, http.StatusOK).Raw, &upgrade)

			if upgrade.Kind != environment.KindUpgradeCluster || upgrade.CreatedAt.Before(at) {
				t.Errorf("the %s of %s was accepted at %s, before the chosen time %s", upgrade.Kind, name, upgrade.CreatedAt, at)
			}
		}

		e.Send(http.MethodPost, "/runtimes/operator/upgradeTime", map[string]any{"time": deadline.Add(-time.Hour).UTC().Format(time.RFC3339)}, http.StatusConflict)

		if target := e.targetsOf(id)["window"]; target.State != "pending" {
			t.Errorf("the upgrade without a chosen time is %s", target.State)
		}

		e.Send(http.MethodPut, "/orchestrations/"+id+"/cancel", nil, http.StatusOK)
		e.Until("the order is canceled", func() bool { return e.targetsOf(id)["window"].State == "canceled" })
	})
}
