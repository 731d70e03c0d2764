package broker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/expiry"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
)

// active returns the fields of an update that suspends (false) or resumes (true) an instance.
func active(value bool) map[string]any { return with("context", with("active", value)) }

// trial creates an instance of the trial plan.
func (b *fixture) trial(id string) {
	b.Helper()

	operation := b.want("a trial", b.put(id, order(with("plan_id", planTrial), with("parameters", nil))), 202).text("operation")
	b.move(operation, process.Succeeded)
}

// suspended creates and suspends an instance of the trial plan.
func (b *fixture) suspended(id string) {
	b.Helper()
	b.trial(id)
	b.succeed(b.want("a suspension", b.patch(id, active(false)), 202).text("operation"))
}

func (b *fixture) kinds(id string) []string {
	b.Helper()

	var kinds []string
	for _, record := range b.carried(id) {
		kinds = append(kinds, record.Kind)
	}

	return kinds
}

func TestSuspensionAndResumption(t *testing.T) {
	onEach(t, func(b *fixture) {
		b.trial(instanceID)

		got := b.do(call{method: "PATCH", path: path(instanceID), body: patching(active(false))})
		b.want("C1: suspensions are asynchronous", got, 422, "AsyncRequired")

		first := b.want("a suspension", b.patch(instanceID, active(false)), 202).text("operation")
		if again := b.want("a repeated request", b.patch(instanceID, active(false)), 202); again.text("operation") != first {
			b.Errorf("the repeated request got another operation: %s", again.Raw)
		}

		b.want("C4: the opposite request conflicts", b.patch(instanceID, active(true)), 422, "ConcurrencyError")
		b.succeed(first)
		b.want("fetched during the suspension", b.get(instanceID), 200)

		if labels := b.get(instanceID).Body["metadata"].(map[string]any)["labels"].(map[string]any); labels["KubeconfigURL"] != nil {
			b.Errorf("the response has a link to the kubeconfig: %v", labels)
		}

		b.want("already suspended", b.patch(instanceID, active(false)), 200)

		administrators := with("parameters", with("administrators", []any{"jane@example.com"}))
		b.want("an update is applied by the resumption", b.patch(instanceID, administrators), 200)

		second := b.want("a resumption", b.patch(instanceID, active(true)), 202).text("operation")
		if again := b.want("a repeated request", b.patch(instanceID, active(true)), 202); again.text("operation") != second {
			b.Errorf("the repeated request got another operation: %s", again.Raw)
		}

		b.want("C4: the opposite request conflicts", b.patch(instanceID, active(false)), 422, "ConcurrencyError")
		b.succeed(second)

		instance := b.stored(instanceID)
		if diff := cmp.Diff([]string{"jane@example.com"}, instance.Request.Cluster.Administrators); diff != "" || instance.Suspended {
			b.Errorf("the cluster is created with the update: -want +got\n%s", diff)
		}

		if diff := cmp.Diff([]string{"resume", "suspend", "provision"}, b.kinds(instanceID)); diff != "" {
			b.Errorf("operations: -want +got\n%s", diff)
		}
	})
}

// TestVersionAfterResumption checks which Kubernetes version a resumed instance gets.
func TestVersionAfterResumption(t *testing.T) {
	cases := map[string]struct{ reason, before, want string }{
		"Newer":   {"an operator has upgraded the fleet", "1.35.2", "1.35.2"},
		"Older":   {"new clusters get 1.34", "1.33.1", "1.34"},
		"Retired": {"Gardener no longer offers the version, and the cluster is new", "1.28", "1.34"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.suspended(instanceID)

			b.rewrite(instanceID, func(instance *environment.Instance) { instance.Request.Cluster.KubernetesVersion = c.before })

			b.want("another update", b.patch(instanceID, with("parameters", with("administrators", []any{"jane@example.com"}))), 200)

			if got := b.stored(instanceID).Request.Cluster.KubernetesVersion; got != c.before {
				t.Errorf("the update has changed the version from %s to %s", c.before, got)
			}

			resumption := b.want("a resumption", b.patch(instanceID, active(true)), 202).text("operation")
			if again := b.want("a repeated request", b.patch(instanceID, active(true)), 202); again.text("operation") != resumption {
				t.Errorf("the repeated request got another operation: %s", again.Raw)
			}

			if got := b.stored(instanceID).Request.Cluster.KubernetesVersion; got != c.want {
				t.Errorf("%s: the version is %s, want %s", c.reason, got, c.want)
			}
		})
	}
}

func TestUpdatesWithSuspensionOrResumption(t *testing.T) {
	b := newFixture(t)
	b.trial(instanceID)

	with := func(value bool, administrator string) map[string]any {
		return map[string]any{
			"context": map[string]any{"active": value}, "parameters": map[string]any{"administrators": []any{administrator}},
		}
	}
	before := b.get(instanceID)

	suspension := b.want("a change of the state and of a parameter", b.patch(instanceID, with(false, "jane@example.com")), 202).text("operation")
	if during := b.get(instanceID); during.Raw != before.Raw {
		b.Errorf("a fetch returns the current state: -before +during\n%s", cmp.Diff(before.Body, during.Body))
	}

	b.succeed(suspension)

	if got := b.stored(instanceID).Request.Cluster.Administrators; cmp.Diff([]string{"jane@example.com"}, got) != "" {
		b.Errorf("the suspension lost data: %v", got)
	}

	resumption := b.want("a change of the state and of a parameter", b.patch(instanceID, with(true, "joe@example.com")), 202).text("operation")
	if again := b.want("a repeated request", b.patch(instanceID, with(true, "joe@example.com")), 202); again.text("operation") != resumption {
		b.Errorf("the repeated request got another operation: %s", again.Raw)
	}

	b.succeed(resumption)

	if got := b.stored(instanceID).Request.Cluster.Administrators; cmp.Diff([]string{"joe@example.com"}, got) != "" {
		b.Errorf("the resumption lost data: %v", got)
	}
}

func TestSuspensionsAndResumptionsThatFail(t *testing.T) {
	b := newFixture(t)
	b.trial(instanceID)

	administrators := with("parameters", with("administrators", []any{"jane@example.com"}))
	failed := func(operation string) {
		t.Helper()
		b.move(operation, process.InProgress)
		b.move(operation, process.Failed)

		got := b.want("C13: reported to the platform", b.poll(instanceID, operation), 200)
		if got.Body["instance_usable"] != false || got.Body["update_repeatable"] != true {
			b.Errorf("C13: %s", got.Raw)
		}
	}

	failed(b.want("a suspension", b.patch(instanceID, active(false)), 202).text("operation"))
	b.want("a partly removed runtime cannot be resumed", b.patch(instanceID, active(true)), 422, "")
	b.want("updates of parameters are rejected", b.patch(instanceID, administrators), 422, "")
	b.want("F8: updates of the context are allowed", b.patch(instanceID, with("context", with("space_name", "x"))), 200)
	b.succeed(b.want("the suspension can be repeated", b.patch(instanceID, active(false)), 202).text("operation"))

	failed(b.want("a resumption", b.patch(instanceID, active(true)), 202).text("operation"))
	b.want("a partly created runtime cannot be updated", b.patch(instanceID, administrators), 422, "")
	failed(b.want("the resumption can be repeated", b.patch(instanceID, active(true)), 202).text("operation"))
	b.succeed(b.want("a failed resumption can be undone by a suspension", b.patch(instanceID, active(false)), 202).text("operation"))
	b.succeed(b.want("the instance can be resumed again", b.patch(instanceID, active(true)), 202).text("operation"))
	b.want("already active", b.patch(instanceID, active(true)), 200)
}

// TestRepeatedParametersAreNoChange sends the stored parameters with each update, as Service Manager and Service Catalog do. In phases
// that do not allow changes, such an update must have the same result as one without parameters.
func TestRepeatedParametersAreNoChange(t *testing.T) {
	onEach(t, func(b *fixture) {
		b.trial(instanceID)

		same := map[string]any{"administrators": []any{"jane@example.com"}, "name": "mine"}
		repeating := func(context map[string]any) map[string]any {
			return map[string]any{"context": context, "parameters": same}
		}
		failed := func(operation string) {
			t.Helper()
			b.move(operation, process.InProgress)
			b.move(operation, process.Failed)
		}

		b.succeed(b.want("an update", b.patch(instanceID, with("parameters", same)), 202).text("operation"))

		failed(b.want("a suspension", b.patch(instanceID, repeating(with("active", false))), 202).text("operation"))
		b.want("F8: a change of the context", b.patch(instanceID, repeating(with("space_name", "x"))), 200)
		b.succeed(b.want("the suspension is repeated", b.patch(instanceID, repeating(with("active", false))), 202).text("operation"))

		failed(b.want("a resumption", b.patch(instanceID, repeating(with("active", true))), 202).text("operation"))
		b.want("F8: a change of the context", b.patch(instanceID, repeating(with("space_name", "y"))), 200)
		b.want("another value", b.patch(instanceID, with("parameters", with("administrators", []any{"joe@example.com"}))), 422, "")
		b.succeed(b.want("the resumption is repeated", b.patch(instanceID, repeating(with("active", true))), 202).text("operation"))

		b.rewrite(instanceID, func(instance *environment.Instance) { instance.ExpiredAt = b.clock.Now() })
		b.want("F8: a change of the context of an expired instance", b.patch(instanceID, repeating(with("space_name", "z"))), 200)
	})
}

// TestResumptionWaitsForTheFormerRuntime checks that a resumption is rejected while the former runtime is a leftover.
func TestResumptionWaitsForTheFormerRuntime(t *testing.T) {
	cases := map[string]struct {
		reason    string
		steps     []string
		shootName string // the Shoot of the leftover, or empty for the Shoot of the instance
		rejected  bool
	}{
		"removal":     {"the order would return the former runtime", []string{"Remove_Runtime"}, "", true},
		"wait":        {"the removal has not ended", []string{"Check_Runtime_Removal"}, "", true},
		"other step":  {"the runtime is gone", []string{"EDP_Deregistration"}, "", false},
		"former life": {"a deleted instance with the same ID had another Shoot", []string{"Remove_Runtime"}, "c-former", false},
	}

	for name, c := range cases {
		onEach(t, func(b *fixture) {
			b.suspended(instanceID)

			former := b.stored(instanceID)
			if c.shootName != "" {
				former.ShootName = c.shootName
			}

			left := environment.NewLeftover(b.carried(instanceID)[0], former, c.steps, b.clock.Now())
			if err := b.options.DB.InTx(b.Context(), func(tx storage.Tx) error { return b.leftovers.Add(b.Context(), tx, left) }); err != nil {
				b.Fatal(err)
			}

			fields := map[string]any{
				"context": map[string]any{"active": true}, "parameters": map[string]any{"administrators": []any{"jane@example.com"}},
			}
			before := b.stored(instanceID)

			if c.rejected {
				got := b.want(name+": "+c.reason, b.patch(instanceID, fields), 422, "ConcurrencyError")
				if got.Body["update_repeatable"] != true || !strings.Contains(got.text("description"), "former cluster") {
					b.Errorf("%s: got %s", name, got.Raw)
				}

				if diff := cmp.Diff(before, b.stored(instanceID)); diff != "" || len(b.kinds(instanceID)) != 2 {
					b.Errorf("%s: a rejected resumption changes nothing: operations %v, -before +after\n%s", name, b.kinds(instanceID), diff)
				}

				if err := b.leftovers.Remove(b.Context(), b.options.DB.Writer(), left.ID); err != nil {
					b.Fatal(err)
				}
			}

			b.succeed(b.want(name+": "+c.reason, b.patch(instanceID, fields), 202).text("operation"))
		})
	}
}

func TestCanceledPendingSuspensionChangesNothing(t *testing.T) {
	b := newFixture(t)
	b.trial(instanceID)

	operation := b.want("a suspension", b.patch(instanceID, active(false)), 202).text("operation")
	if _, err := b.operations.CancelOne(b.Context(), b.operations.Reader(), operation, "a test", b.clock.Now()); err != nil {
		t.Fatal(err)
	}

	b.want("still active", b.patch(instanceID, active(true)), 200)
	b.want("updates are still allowed", b.patch(instanceID, with("parameters", with("administrators", []any{"jane@example.com"}))), 202)
}

// TestUpdateDuringTwoOperations sends updates while an update is in progress and a suspension waits for its end. The
// result depends on both operations, so no update request may return one of them, even if that one makes all requested
// changes.
func TestUpdateDuringTwoOperations(t *testing.T) {
	onEach(t, func(b *fixture) {
		b.trial(instanceID)

		fields := with("parameters", with("administrators", []any{"jane@example.com"}))
		update := b.want("an update", b.patch(instanceID, fields), 202).text("operation")
		b.move(update, process.InProgress)

		if again := b.want("F10: one operation is unfinished", b.patch(instanceID, fields), 202); again.text("operation") != update {
			b.Errorf("F10: the repeated request got another operation: %s", again.Raw)
		}

		suspension, err := expiry.Expirer{
			DB: b.options.DB, Instances: b.instances, Operations: b.operations, Periods: b.options.Periods,
			Recorder: b.options.Recorder, Wake: b.options.Wake, Clock: b.clock,
		}.Expire(b.Context(), instanceID, "a test")
		if err != nil {
			b.Fatal(err)
		}

		for name, fields := range map[string]map[string]any{
			"the running update": fields, "the waiting suspension": active(false), "a resumption": active(true),
			"another update": with("parameters", with("administrators", []any{"joe@example.com"})), "no change": nil,
		} {
			got := b.want("C4: during two operations: "+name, b.patch(instanceID, fields), 422, "ConcurrencyError")
			if got.Body["update_repeatable"] != true {
				b.Errorf("F15: %s is not reported as repeatable: %s", name, got.Raw)
			}
		}

		b.cancelOne(suspension)
		b.want("F10: one operation is unfinished again", b.patch(instanceID, fields), 202)
	})
}

func TestAnExpiredInstanceCanOnlyBeDeleted(t *testing.T) {
	b := newFixture(t)
	b.suspended(instanceID)
	b.rewrite(instanceID, func(instance *environment.Instance) { instance.ExpiredAt = b.clock.Now() })

	b.want("an expired instance cannot be resumed", b.patch(instanceID, active(true)), 422, "")
	b.want("updates of parameters are rejected", b.patch(instanceID, with("parameters", with("administrators", []any{"jane@example.com"}))), 422, "")
	b.want("F8: updates of the context are allowed", b.patch(instanceID, with("context", with("space_name", "x"))), 200)
	b.want("already suspended", b.patch(instanceID, active(false)), 200)

	deletion := b.want("the expired instance can be deleted", b.do(call{
		method: "DELETE", path: path(instanceID) + "?accepts_incomplete=true&service_id=" + serviceID + "&plan_id=" + planTrial,
	}), 202)
	b.want("C4: the deletion conflicts", b.patch(instanceID, active(true)), 422, "ConcurrencyError")
	b.forget(instanceID)
	b.move(deletion.text("operation"), process.Succeeded)
}

func TestLabelsShowRemainingDays(t *testing.T) {
	b := newFixture(t)
	b.trial(instanceID)
	b.provisioned("lasts")

	made := b.clock.Now()

	for name, test := range map[string]struct {
		age     time.Duration
		expired bool
		want    string
	}{
		"New":     {0, false, "Your cluster expires in 14 days."},
		"Day":     {12*24*time.Hour + 1, false, "Your cluster expires in 1 day."},
		"Hours":   {13*24*time.Hour + 1, false, "Your cluster expires within a day."},
		"Over":    {15 * 24 * time.Hour, false, "Your cluster expires within a day."},
		"Expired": {15 * 24 * time.Hour, true, "Your cluster has expired and is no longer available. You can only delete the instance."},
	} {
		b.clock.SetTime(made.Add(test.age))
		b.rewrite(instanceID, func(instance *environment.Instance) {
			instance.ExpiredAt = time.Time{}
			if test.expired {
				instance.ExpiredAt = made
			}
		})

		labels := b.get(instanceID).Body["metadata"].(map[string]any)["labels"].(map[string]any)
		if got := labels["Trial account expiration details"]; got != test.want {
			b.Errorf("%s: want %q, got %q", name, test.want, got)
		}
	}

	if labels := b.get("lasts").Body["metadata"].(map[string]any)["labels"].(map[string]any); len(labels) != 2 {
		b.Errorf("an instance without an end has an expiration label: %v", labels)
	}
}

func TestAccountMovement(t *testing.T) {
	b := newFixture(t, func(options *broker.Options) { options.AccountMovement = true })
	b.provisioned(instanceID)

	first := b.stored(instanceID)

	b.want("the instance moves to another account", b.patch(instanceID, with("context", with("globalaccount_id", "second"))), 200)
	b.want("a repeated request", b.patch(instanceID, with("context", with("globalaccount_id", "second"))), 200)
	b.want("the instance moves again", b.patch(instanceID, with("context", with("globalaccount_id", "third"))), 200)

	moved := b.stored(instanceID)
	got := []string{moved.GlobalAccountID, moved.SubscriptionAccountID, moved.RuntimeTenant(), moved.SubAccountID}

	if diff := cmp.Diff([]string{"third", first.GlobalAccountID, first.GlobalAccountID, first.SubAccountID}, got); diff != "" {
		b.Errorf("account, first account, Provisioner tenant, subaccount: -want +got\n%s", diff)
	}

	update := b.want("an update", b.patch(instanceID, with("parameters", with("autoScalerMin", 6))), 202).text("operation")
	if record := b.carried(instanceID)[0]; record.ID != update || record.Tenant != "third" {
		b.Errorf("a later operation belongs to tenant %s, want the new account", record.Tenant)
	}
}

// TestAccountMovementRenewsLabels checks that a change of the account reaches the labels in the control plane, although it runs no
// operation.
func TestAccountMovementRenewsLabels(t *testing.T) {
	b := newFixture(t, func(options *broker.Options) { options.AccountMovement = true })
	b.provisioned(instanceID)

	for system, kind := range map[string]string{
		environment.SystemLifecycleManager: environment.KindKubeconfig, environment.SystemReconciler: environment.KindCluster,
	} {
		object := environment.OutsideObject{InstanceID: instanceID, System: system, Kind: kind, Key: "runtime", State: environment.OutsideCreated}

		if err := b.options.DB.InTx(t.Context(), func(tx storage.Tx) error {
			return b.objects.Insert(t.Context(), tx, object, b.clock.Now())
		}); err != nil {
			t.Fatal(err)
		}

		// The next renewal is due in four hours.
		if began, err := b.objects.BeginRenewal(t.Context(), outsideobjects.Renewal{
			Object: object, Now: b.clock.Now(), RetryAt: b.clock.Now().Add(4 * time.Hour),
		}); err != nil || !began {
			t.Fatalf("the first renewal begins: %t, %v", began, err)
		}
	}

	for _, row := range []struct {
		name string
		body map[string]any
		want bool
	}{
		{"another organization", with("context", with("organization_name", "other")), false},
		{"another account", with("context", with("globalaccount_id", "second")), true},
	} {
		b.want(row.name, b.patch(instanceID, row.body), 200)

		due, err := b.objects.DueCredentials(t.Context(), []string{environment.SystemLifecycleManager, environment.SystemReconciler}, b.clock.Now(), 9)
		if err != nil {
			t.Fatal(err)
		}

		if got := len(due) == 1 && due[0].System == environment.SystemLifecycleManager; got != row.want || len(due) > 1 {
			t.Errorf("%s: due are %+v", row.name, due)
		}
	}
}
