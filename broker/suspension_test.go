package broker_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// active is an update that suspends or resumes.
func active(value bool) map[string]any { return with("context", with("active", value)) }

// trial makes an instance of plan trial that is ready.
func (b *fixture) trial(id string) {
	b.Helper()

	operation := b.want("a trial", b.put(id, order(with("plan_id", planTrial), with("parameters", nil))), 202).text("operation")
	b.move(operation, process.Succeeded)
}

// suspended makes an instance of plan trial that is suspended.
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
		b.want("C1: a suspension takes its time", got, 422, "AsyncRequired")

		first := b.want("a suspension", b.patch(instanceID, active(false)), 202).text("operation")
		if again := b.want("the same", b.patch(instanceID, active(false)), 202); again.text("operation") != first {
			b.Errorf("another operation: %s", again.Raw)
		}

		b.want("C4: the opposite must wait", b.patch(instanceID, active(true)), 422, "ConcurrencyError")
		b.succeed(first)
		b.want("it is fetched as before", b.get(instanceID), 200)

		if labels := b.get(instanceID).Body["metadata"].(map[string]any)["labels"].(map[string]any); labels["KubeconfigURL"] != nil {
			b.Errorf("a kubeconfig is offered: %v", labels)
		}

		b.want("it is suspended already", b.patch(instanceID, active(false)), 200)

		administrators := with("parameters", with("administrators", []any{"jane@example.com"}))
		b.want("a change waits for the resumption", b.patch(instanceID, administrators), 200)

		second := b.want("a resumption", b.patch(instanceID, active(true)), 202).text("operation")
		if again := b.want("the same", b.patch(instanceID, active(true)), 202); again.text("operation") != second {
			b.Errorf("another operation: %s", again.Raw)
		}

		b.want("C4: the opposite must wait", b.patch(instanceID, active(false)), 422, "ConcurrencyError")
		b.succeed(second)

		instance := b.stored(instanceID)
		if diff := cmp.Diff([]string{"jane@example.com"}, instance.Request.Cluster.Administrators); diff != "" || instance.Suspended {
			b.Errorf("the cluster is made with the change: -want +got\n%s", diff)
		}

		if diff := cmp.Diff([]string{"resume", "suspend", "provision"}, b.kinds(instanceID)); diff != "" {
			b.Errorf("operations: -want +got\n%s", diff)
		}
	})
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

	suspension := b.want("both", b.patch(instanceID, with(false, "jane@example.com")), 202).text("operation")
	if during := b.get(instanceID); during.Raw != before.Raw {
		b.Errorf("GET returns the current state: -before +during\n%s", cmp.Diff(before.Body, during.Body))
	}

	b.succeed(suspension)

	if got := b.stored(instanceID).Request.Cluster.Administrators; cmp.Diff([]string{"jane@example.com"}, got) != "" {
		b.Errorf("nothing is lost by the suspension: %v", got)
	}

	resumption := b.want("both", b.patch(instanceID, with(true, "joe@example.com")), 202).text("operation")
	if again := b.want("the same", b.patch(instanceID, with(true, "joe@example.com")), 202); again.text("operation") != resumption {
		b.Errorf("another operation: %s", again.Raw)
	}

	b.succeed(resumption)

	if got := b.stored(instanceID).Request.Cluster.Administrators; cmp.Diff([]string{"joe@example.com"}, got) != "" {
		b.Errorf("nor by the resumption: %v", got)
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
	b.want("a half removed runtime is not resumed", b.patch(instanceID, active(true)), 422, "")
	b.want("nor changed", b.patch(instanceID, administrators), 422, "")
	b.want("F8: a context is", b.patch(instanceID, with("context", with("space_name", "x"))), 200)
	b.succeed(b.want("it can be repeated", b.patch(instanceID, active(false)), 202).text("operation"))

	failed(b.want("a resumption", b.patch(instanceID, active(true)), 202).text("operation"))
	b.want("a half created runtime is not changed", b.patch(instanceID, administrators), 422, "")
	failed(b.want("it can be repeated", b.patch(instanceID, active(true)), 202).text("operation"))
	b.succeed(b.want("and undone", b.patch(instanceID, active(false)), 202).text("operation"))
	b.succeed(b.want("and begun again", b.patch(instanceID, active(true)), 202).text("operation"))
	b.want("it is active", b.patch(instanceID, active(true)), 200)
}

func TestCanceledPendingSuspensionChangesNothing(t *testing.T) {
	b := newFixture(t)
	b.trial(instanceID)

	operation := b.want("a suspension", b.patch(instanceID, active(false)), 202).text("operation")
	if _, err := b.operations.CancelOne(b.Context(), b.operations.Reader(), operation, "a test", b.clock.Now()); err != nil {
		t.Fatal(err)
	}

	b.want("it is active", b.patch(instanceID, active(true)), 200)
	b.want("and is changed as before", b.patch(instanceID, with("parameters", with("administrators", []any{"jane@example.com"}))), 202)
}

func TestAnExpiredInstanceCanOnlyBeDeleted(t *testing.T) {
	b := newFixture(t)
	b.suspended(instanceID)
	b.rewrite(instanceID, func(instance *environment.Instance) { instance.ExpiredAt = b.clock.Now() })

	b.want("it is not resumed", b.patch(instanceID, active(true)), 422, "")
	b.want("nor changed", b.patch(instanceID, with("parameters", with("administrators", []any{"jane@example.com"}))), 422, "")
	b.want("F8: its context is", b.patch(instanceID, with("context", with("space_name", "x"))), 200)
	b.want("it is suspended already", b.patch(instanceID, active(false)), 200)

	deletion := b.want("it is deleted", b.do(call{
		method: "DELETE", path: path(instanceID) + "?accepts_incomplete=true&service_id=" + serviceID + "&plan_id=" + planTrial,
	}), 202)
	b.want("C4: that is under way", b.patch(instanceID, active(true)), 422, "ConcurrencyError")
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
		"Expired": {15 * 24 * time.Hour, true, "Your cluster has expired. It is removed, and the instance can only be deleted."},
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
		b.Errorf("a plan without a limit shows no end: %v", labels)
	}
}

func TestAccountMovement(t *testing.T) {
	b := newFixture(t, func(options *broker.Options) { options.AccountMovement = true })
	b.provisioned(instanceID)

	first := b.stored(instanceID)

	b.want("it moves", b.patch(instanceID, with("context", with("globalaccount_id", "second"))), 200)
	b.want("and is there", b.patch(instanceID, with("context", with("globalaccount_id", "second"))), 200)
	b.want("and moves on", b.patch(instanceID, with("context", with("globalaccount_id", "third"))), 200)

	moved := b.stored(instanceID)
	got := []string{moved.GlobalAccountID, moved.SubscriptionAccountID, moved.RuntimeTenant(), moved.SubAccountID}

	if diff := cmp.Diff([]string{"third", first.GlobalAccountID, first.GlobalAccountID, first.SubAccountID}, got); diff != "" {
		b.Errorf("the account, the first one, the Provisioner's tenant, the subaccount: -want +got\n%s", diff)
	}

	update := b.want("an update", b.patch(instanceID, with("parameters", with("autoScalerMin", 6))), 202).text("operation")
	if record := b.carried(instanceID)[0]; record.ID != update || record.Tenant != "third" {
		b.Errorf("later operations take the turns of the new account: %s", record.Tenant)
	}
}
