package broker_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// TestAccountCleanup checks that the timeline names the job that deletes the instances of deleted subaccounts.
func TestAccountCleanup(t *testing.T) {
	b := newFixture(t)

	const accountCleanup = "accountcleanup-job"

	for agent, want := range map[string]string{
		accountCleanup: "requested by accountcleanup-job: the subaccount was deleted", "curl": environment.KindDeprovision, "accountcleanup-jobs": environment.KindDeprovision,
	} {
		b.provisioned(instanceID + agent)
		got := b.want("a deletion by "+agent, b.do(call{
			method: "DELETE", path: path(instanceID+agent) + "?accepts_incomplete=true" + ids, header: map[string]string{"User-Agent": agent},
		}), 202)

		timeline, err := b.operations.Timeline(t.Context(), got.text("operation"))
		if err != nil {
			t.Fatal(err)
		}

		message := ""
		if len(timeline) > 0 {
			message = timeline[0].Message
		}

		if message != want {
			t.Errorf("the timeline of a deletion by %s begins with %q, want %q", agent, message, want)
		}

		var data environment.Data
		decoded(b, b.payload(got.text("operation")), &data)

		if data.SubaccountDeleted != (agent == accountCleanup) || data.Instance.ID != instanceID+agent {
			t.Errorf("the steps of a deletion by %s learn: subaccount deleted %t, instance %q", agent, data.SubaccountDeleted, data.Instance.ID)
		}
	}
}

func TestDeprovision(t *testing.T) {
	onEach(t, func(b *fixture) {
		b.provisioned(instanceID)
		instance := b.stored(instanceID)

		first := b.want("J4: a deletion is accepted", b.remove(instanceID), 202)
		if diff := cmp.Diff(map[string]any{"operation": first.text("operation")}, first.Body); diff != "" {
			b.Errorf("body: -want +got\n%s", diff)
		}

		records := b.carried(instanceID)
		if records[0].ID != first.text("operation") || records[0].Kind != environment.KindDeprovision {
			b.Fatalf("operations: %+v", records)
		}

		var data environment.Data
		if err := json.Unmarshal(b.payload(records[0].ID), &data); err != nil {
			b.Fatal(err)
		}

		instance.UpdatedAt = data.Instance.UpdatedAt
		if diff := cmp.Diff(environment.Data{Instance: instance}, data); diff != "" {
			b.Errorf("data of the operation: -want +got\n%s", diff)
		}

		b.move(first.text("operation"), process.InProgress)

		again := b.want("J4: repeated during the deletion", b.remove(instanceID), 202)
		if again.text("operation") != first.text("operation") {
			b.Errorf("J4: the repeated request got another operation: %s", again.Raw)
		}

		b.want("J6: a synchronous deletion", b.do(call{method: "DELETE", path: path(instanceID) + "?" + ids[1:]}), 422, "AsyncRequired")

		b.forget(instanceID)

		last := b.want("J4: the row is deleted, the operation unfinished", b.remove(instanceID), 202)
		if last.text("operation") != first.text("operation") {
			b.Errorf("J4: the repeated request got another operation: %s", last.Raw)
		}

		b.move(first.text("operation"), process.Succeeded)
		b.want("J5, J14: already deleted", b.remove(instanceID), 410)
		b.want("J5: a synchronous request after the deletion", b.do(call{method: "DELETE", path: path(instanceID) + "?" + ids[1:]}), 410)

		if b.wakes.Load() != 2 || len(b.carried(instanceID)) != 2 {
			b.Errorf("repeated deletions started an operation: %d wake-ups", b.wakes.Load())
		}
	})
}

func TestDeprovisionIsRejected(t *testing.T) {
	cases := map[string]struct {
		reason string
		path   string
		status int
		code   string
	}{
		"NoService":     {"service_id is required", path(instanceID) + "?accepts_incomplete=true&plan_id=" + planAWS, 400, ""},
		"NoPlan":        {"plan_id is required", path(instanceID) + "?accepts_incomplete=true&service_id=" + serviceID, 400, ""},
		"EmptyPlan":     {"plan_id must not be empty", path(instanceID) + "?accepts_incomplete=true&plan_id=&service_id=" + serviceID, 400, ""},
		"OtherPlan":     {"plan_id must be that of the instance", path(instanceID) + "?accepts_incomplete=true&plan_id=" + planGCP + "&service_id=" + serviceID, 400, ""},
		"OtherService":  {"service_id must be that of the instance", path(instanceID) + "?accepts_incomplete=true&plan_id=" + planAWS + "&service_id=x", 400, ""},
		"BadQuery":      {"the query must be well-formed", path(instanceID) + "?accepts_incomplete=true&%zz", 400, ""},
		"Unknown":       {"an unknown instance", path("other") + "?accepts_incomplete=true" + ids, 410, ""},
		"UnknownSync":   {"an unknown instance, with a synchronous request", path("other") + "?" + ids[1:], 410, ""},
		"AsyncRequired": {"deletions are asynchronous", path(instanceID) + "?" + ids[1:], 422, "AsyncRequired"},
	}

	b := newFixture(t)
	b.provisioned(instanceID)

	for name, test := range cases {
		b.want(name+": "+test.reason, b.do(call{method: "DELETE", path: test.path}), test.status, test.code)
		b.want("A15: the instance is unchanged", b.get(instanceID), 200)
	}
}

func TestDeletionCancelsCreation(t *testing.T) {
	onEach(t, func(b *fixture) {
		pending := b.want("a creation", b.put("pending", order()), 202).text("operation")
		deletion := b.want("J8: deleted before the creation starts", b.remove("pending"), 202).text("operation")

		got := b.want("J8: the creation has failed", b.poll("pending", pending), 200)
		if got.text("state") != "failed" {
			b.Errorf("state of a canceled creation: %s", got.Raw)
		}

		got = b.want("J8: the newest operation is the deletion", b.poll("pending", ""), 200)
		if got.text("state") != "in progress" {
			b.Errorf("state of the deletion: %s", got.Raw)
		}

		b.forget("pending")
		b.move(deletion, process.Succeeded)
		b.want("J13: the instance is gone", b.remove("pending"), 410)

		running := b.want("another creation", b.put("running", order()), 202).text("operation")
		b.move(running, process.InProgress)
		deletion = b.want("J8: deleted while the creation runs", b.remove("running"), 202).text("operation")

		got = b.want("J8: the creation ends at its next safe point", b.poll("running", running), 200)
		if got.text("state") != "in progress" {
			b.Errorf("state of a creation that is being canceled: %s", got.Raw)
		}

		again := b.want("J4: a repeated deletion does not cancel the deletion", b.remove("running"), 202)
		if again.text("operation") != deletion {
			b.Errorf("J4: the repeated request got another operation: %s", again.Raw)
		}

		b.move(running, process.Canceled)
		b.forget("running")
		b.move(deletion, process.Succeeded)
		b.want("the instance is gone", b.remove("running"), 410)
	})
}

func TestFailedDeletionIsRetried(t *testing.T) {
	b := newFixture(t)
	b.provisioned(instanceID)

	first := b.want("a deletion", b.remove(instanceID), 202).text("operation")
	b.move(first, process.Failed)

	second := b.want("J12: a retry is a new operation", b.remove(instanceID), 202).text("operation")
	if first == second {
		b.Error("the response names the failed operation again")
	}

	b.want("C10: the failure is still reported", b.poll(instanceID, first), 200)
	b.forget(instanceID)
	b.move(second, process.Succeeded)
	b.want("the instance is gone", b.remove(instanceID), 410)
}

// TestDeletionAfterCanceledDeletion deletes an instance whose earlier deletion is being canceled. The new deletion must
// get its own operation.
func TestDeletionAfterCanceledDeletion(t *testing.T) {
	onEach(t, func(b *fixture) {
		b.provisioned(instanceID)

		first := b.want("a deletion", b.remove(instanceID), 202).text("operation")
		b.move(first, process.InProgress)
		b.cancelOne(first)

		second := b.want("a repeated deletion", b.remove(instanceID), 202).text("operation")
		again := b.want("J4: repeated while it is pending", b.remove(instanceID), 202).text("operation")

		if second == first || again != second {
			b.Errorf("got the deletions %s (canceled), %s and %s; want a new one and its repetition", first, second, again)
		}

		b.move(first, process.Canceled)
		b.move(second, process.InProgress)
		b.cancelOne(second)
		b.forget(instanceID)
		b.want("J5: the instance is already deleted", b.remove(instanceID), 410)
	})
}

// TestDeletionAfterARefusedOrder deletes an instance that never existed, as Cloud Foundry does after a rejected order.
func TestDeletionAfterARefusedOrder(t *testing.T) {
	onEach(t, func(b *fixture) {
		b.want("an invalid order", b.put("refused", order(with("plan_id", "x"))), 400)

		if got := b.want("a deletion", b.remove("refused"), 410).text("description"); got != "The instance does not exist." {
			t.Errorf("the text says that the instance existed: %q", got)
		}
	})
}

// TestDeleteWithSubaccount checks the deletions that the subaccounts job requests.
func TestDeleteWithSubaccount(t *testing.T) {
	const why = "the subaccount was deleted"

	onEach(t, func(b *fixture) {
		accept := func(reason, id string, want bool) {
			b.Helper()

			if accepted, err := broker.DeleteWithSubaccount(b.Context(), b.options, id, why); err != nil || accepted != want {
				b.Errorf("%s: accepted %t, %v", reason, accepted, err)
			}
		}

		wantProtected := func(reason, id string, want bool) {
			b.Helper()

			if protected, err := broker.Protected(b.Context(), b.options, id); err != nil || protected != want {
				b.Errorf("%s: protected %t, %v", reason, protected, err)
			}
		}

		accept("an unknown instance", "unknown", false)
		wantProtected("an unknown instance", "unknown", false)

		b.provisioned(instanceID)
		wantProtected("an instance without protection", instanceID, false)
		b.edit(instanceID, func(instance *environment.Instance) { instance.DeletionProtection = true })
		wantProtected("a protected instance", instanceID, true)

		if accepted, err := broker.DeleteWithSubaccount(b.Context(), b.options, instanceID, why); accepted || !failure.Is(err, failure.Conflict) {
			b.Errorf("a protected instance: accepted %t, %v", accepted, err)
		}

		wantEntry := func(status int, code string) {
			b.Helper()

			entries, err := b.entries.List(b.Context(), auditlog.Filter{Limit: 9, Action: environment.KindDeprovision, InstanceID: instanceID})
			if err != nil || !slices.ContainsFunc(entries, func(each auditlog.Entry) bool {
				return each.Status == status && each.Code == code && each.Reason == why
			}) {
				b.Errorf("want an entry with status %d, code %q and the reason; got %+v, %v", status, code, entries, err)
			}
		}
		wantEntry(422, "DeletionProtected")

		b.edit(instanceID, func(instance *environment.Instance) { instance.DeletionProtection = false })
		accept("an instance", instanceID, true)
		wantEntry(202, "")
		accept("a running deletion", instanceID, false)

		records := b.carried(instanceID)
		deletion := records[0]

		if deletion.Kind != environment.KindDeprovision {
			b.Fatalf("the newest operation is %s", deletion.Kind)
		}

		timeline, err := b.operations.Timeline(b.Context(), deletion.ID)
		if err != nil || len(timeline) == 0 || timeline[0].Message != why {
			b.Errorf("the timeline is %+v, %v", timeline, err)
		}

		var data environment.Data
		decoded(b, b.payload(deletion.ID), &data)

		if !data.SubaccountDeleted {
			b.Error("the steps do not learn that the subaccount was deleted")
		}

		b.move(deletion.ID, process.Failed)
		accept("a failed deletion", instanceID, true)
	})
}
