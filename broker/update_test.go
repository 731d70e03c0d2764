package broker_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

func TestSynchronousUpdates(t *testing.T) {
	cases := map[string]struct {
		reason string
		fields map[string]any
	}{
		"Nothing":        {"F3, F4: absent fields keep their values", nil},
		"SamePlan":       {"F20: the plan is unchanged", with("plan_id", planAWS)},
		"NoParameters":   {"F4: empty parameters change nothing", with("parameters", map[string]any{})},
		"NullParameters": {"F4: null changes nothing", with("parameters", nil)},
		"SameParameters": {"F20: the cluster already has this value", with("parameters", with("autoScalerMin", 4))},
		"SameRegion":     {"V1: a parameter as it was sent in the order", with("parameters", with("region", "eu-west-1"))},
		"SamePurpose":    {"V1: the resolved value of a parameter", with("parameters", with("purpose", "development"))},
		"SameVersion":    {"F20: the cluster already has this version", with("maintenance_info", with("version", "1.0.0"))},
		"NoVersion":      {"M5: no version requests no maintenance", with("maintenance_info", map[string]any{})},
		"Context":        {"F8: the context changes nothing else", with("context", with("organization_name", "renamed"))},
		"Active":         {"the instance is already active", with("context", with("active", true))},
		"NoAdministrators": {
			"the user who ordered the instance stays its administrator", with("parameters", with("administrators", []string{})),
		},
		"NoIssuer":   {"an empty object is treated as absent", with("parameters", with("oidc", map[string]any{}))},
		"NoPrevious": {"F18: null equals an absent value", with("previous_values", nil)},
		"NullPlan":   {"F5: null equals an absent value", with("plan_id", nil)},
		"Previous":   {"F18: previous_values are ignored", with("previous_values", with("plan_id", 5))},
	}

	b := newFixture(t)
	b.provisioned(instanceID)

	before := b.get(instanceID)

	for name, test := range cases {
		got := b.want(name+": "+test.reason, b.do(call{method: "PATCH", path: path(instanceID), body: patching(test.fields)}), 200)
		if diff := cmp.Diff(map[string]any{}, got.Body); diff != "" {
			b.Errorf("F9: %s: -want +got\n%s", name, diff)
		}

		if after := b.get(instanceID); after.Raw != before.Raw {
			b.Errorf("%s: -before +after\n%s", name, cmp.Diff(before.Body, after.Body))
		}
	}

	if len(b.carried(instanceID)) != 1 {
		b.Error("an update without effect started an operation")
	}

	var context map[string]any
	decoded(b, b.stored(instanceID).Request.Context, &context)

	if context["organization_name"] != "renamed" || context["instance_name"] != "mine" {
		b.Errorf("F8: the context is not merged: %v", context)
	}
}

func TestUpdate(t *testing.T) {
	onEach(t, func(b *fixture) {
		b.provisioned(instanceID)
		before := b.get(instanceID)

		fields := map[string]any{
			"plan_id": planAWS, "parameters": with("autoScalerMin", 6), "context": with("space_name", "new"),
		}
		first := b.want("updates of the cluster are asynchronous", b.patch(instanceID, fields), 202)

		if diff := cmp.Diff(map[string]any{"operation": first.text("operation")}, first.Body); diff != "" {
			b.Errorf("F16: -want +got\n%s", diff)
		}

		again := b.want("F10: a repeated request", b.patch(instanceID, fields), 202)
		b.want("C1: a repeated synchronous request", b.do(call{method: "PATCH", path: path(instanceID), body: patching(fields)}), 422, "AsyncRequired")
		b.want("C4: another update", b.patch(instanceID, with("parameters", with("autoScalerMin", 7))), 422, "ConcurrencyError")
		b.move(first.text("operation"), process.InProgress)

		later := b.want("F10: repeated during the update", b.patch(instanceID, fields), 202)
		if again.text("operation") != first.text("operation") || later.text("operation") != first.text("operation") {
			b.Errorf("F10: repeated requests got other operations: %s, %s", again.Raw, later.Raw)
		}

		if during := b.want("E5: fetched during the update", b.get(instanceID), 200); during.Raw != before.Raw {
			b.Errorf("a fetch returns the current state: -before +during\n%s", cmp.Diff(before.Body, during.Body))
		}

		b.want("D12: a repeated order matches the instance", b.put(instanceID, order()), 200)
		b.succeed(first.text("operation"))

		if got := b.poll(instanceID, ""); got.text("state") != "succeeded" {
			b.Errorf("C10: the newest operation is not the update: %s", got.Raw)
		}

		want := map[string]any{"region": "eu-west-1", "autoScalerMin": 6.}
		if diff := cmp.Diff(want, b.get(instanceID).Body["parameters"]); diff != "" {
			b.Errorf("parameters afterwards: -want +got\n%s", diff)
		}

		b.want("F20: the update is already applied", b.patch(instanceID, fields), 200)
		b.want("D12: the initial order still matches", b.put(instanceID, order()), 200)
		b.want("D13: another order does not match", b.put(instanceID, order(with("parameters", with("autoScalerMin", 9)))), 409)
	})
}

func TestAFailedUpdateChangesNothing(t *testing.T) {
	b := newFixture(t)
	b.provisioned(instanceID)

	before := b.get(instanceID)
	failing := b.want("an update", b.patch(instanceID, with("parameters", with("autoScalerMin", 6))), 202).text("operation")

	b.move(failing, process.Failed, func(record *process.Record) { record.Problem.Message = "no quota" })

	got := b.want("C13: reported to the platform", b.poll(instanceID, failing), 200)
	want := map[string]any{"state": "failed", "description": "Changing the cluster failed: no quota", "instance_usable": true, "update_repeatable": true}

	if diff := cmp.Diff(want, got.Body); diff != "" {
		b.Errorf("C13: -want +got\n%s", diff)
	}

	if after := b.get(instanceID); after.Raw != before.Raw {
		b.Errorf("F13: -before +after\n%s", cmp.Diff(before.Body, after.Body))
	}

	next := b.want("another update starts from the current state", b.patch(instanceID, with("parameters", with("autoScalerMax", 30))), 202).text("operation")
	if cluster := b.change(next).Cluster; next == failing || cluster.AutoScalerMin != 4 || cluster.AutoScalerMax != 30 {
		b.Errorf("the next update requests %d to %d nodes", cluster.AutoScalerMin, cluster.AutoScalerMax)
	}
}

func TestConcurrentUpdates(t *testing.T) {
	onEach(t, func(b *fixture) {
		b.provisioned(instanceID)

		var (
			senders  sync.WaitGroup
			statuses = make([]int, 4)
		)

		for i := range statuses {
			senders.Go(func() {
				statuses[i] = b.send(call{
					method: http.MethodPatch, path: path(instanceID) + "?accepts_incomplete=true",
					body: patching(with("parameters", with("autoScalerMin", 5+i))),
				}).Status
			})
		}

		senders.Wait()
		slices.Sort(statuses)

		if diff := cmp.Diff([]int{202, 422, 422, 422}, statuses); diff != "" {
			b.Errorf("statuses, of which only one is a success: -want +got\n%s", diff)
		}
	})
}

func TestMaintenance(t *testing.T) {
	b := newFixture(t)
	b.provisioned(instanceID)
	b.rewrite(instanceID, func(instance *environment.Instance) {
		instance.MaintenanceVersion, instance.Request.Cluster.KubernetesVersion = "0.9.0", "1.33.1"
	})

	if got := b.get(instanceID).Body["maintenance_info"]; cmp.Diff(map[string]any{"version": "0.9.0"}, got) != "" {
		b.Errorf("E6: the current version: %v", got)
	}

	operation := b.want("F12: maintenance is asynchronous",
		b.patch(instanceID, with("maintenance_info", with("version", "1.0.0"))), 202).text("operation")

	if change := b.change(operation); change.Cluster.KubernetesVersion != "1.34" || change.MaintenanceVersion != "1.0.0" {
		b.Errorf("the update has Kubernetes version %s and maintenance version %s", change.Cluster.KubernetesVersion, change.MaintenanceVersion)
	}

	b.succeed(operation)

	if got := b.get(instanceID).Body["maintenance_info"]; cmp.Diff(map[string]any{"version": "1.0.0"}, got) != "" {
		b.Errorf("E6: the version after the update: %v", got)
	}
}

func TestDeletionCancelsUpdate(t *testing.T) {
	b := newFixture(t)
	b.provisioned(instanceID)

	update := b.want("an update", b.patch(instanceID, with("parameters", with("autoScalerMin", 6))), 202).text("operation")
	b.move(update, process.InProgress)

	deletion := b.want("J8: a deletion during the update", b.remove(instanceID), 202).text("operation")
	b.move(update, process.Canceled)

	if got := b.poll(instanceID, update); got.text("state") != "failed" {
		b.Errorf("J8: the canceled update is reported as %s", got.Raw)
	}

	b.forget(instanceID)
	b.move(deletion, process.Succeeded)
	b.want("gone", b.remove(instanceID), 410)
}
