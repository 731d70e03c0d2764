package operator_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// stored returns the row of an instance.
func (b *bench) stored(id string) environment.Instance {
	b.Helper()

	instance, err := b.instances.Get(b.Context(), b.db.Reader(), id)
	if err != nil {
		b.Fatal(err)
	}

	return instance
}

// rewrite changes the row of an instance without an operation.
func (b *bench) rewrite(id string, change func(*environment.Instance)) {
	b.Helper()

	instance := b.stored(id)
	change(&instance)
	b.inTx(func(tx storage.Tx) error { return b.instances.Update(b.Context(), tx, instance) })
}

// failedChange stores a failed operation that changes an instance, and returns its ID.
func (b *bench) failedChange(kind, instanceID string, change func(*environment.Update)) string {
	b.Helper()

	instance := b.stored(instanceID)
	update := environment.UnchangedUpdate(instance)
	change(&update)

	return b.operation(instanceID, kind, process.Failed, func(progress *process.Progress) {
		accepted, err := environment.NewOperation(kind, instance, &update, b.clock.Now())
		if err != nil {
			b.Fatal(err)
		}

		progress.Record.Payload = accepted.Payload
	})
}

// succeeds applies the result of an operation to the row of its instance.
func (b *bench) succeeds(record process.Record) {
	b.Helper()

	var data environment.Data
	if err := json.Unmarshal(b.payload(record.ID), &data); err != nil {
		b.Fatal(err)
	}

	rows := service.NewRows(service.Tables{DB: b.db, Operations: b.operations, Instances: b.instances, Bindings: b.bindings}, b.clock)

	effect := rows.Update(data.Instance, *data.Update)
	if record.Kind == environment.KindSuspend {
		effect = rows.Suspend(record, data.Instance, data.Update, nil)
	}

	b.inTx(func(tx storage.Tx) error { return effect.(operations.Effect)(b.Context(), tx) })
}

// TestRetryKeepsLaterChanges moves an instance to another account and rotates its credentials after an operation has failed. Neither
// needs an operation. The retry must make the change that was ordered, and keep the later changes.
func TestRetryKeepsLaterChanges(t *testing.T) {
	credentials := func(id string) *environment.ServiceManager {
		return &environment.ServiceManager{ClientID: secret.Stored(id)}
	}

	onEach(t, func(b *bench) {
		for kind, reason := range map[string]string{
			environment.KindUpdate:         "an update of the nodes",
			environment.KindSuspend:        "a suspension with an update of the nodes",
			environment.KindUpgradeCluster: "an upgrade that failed in its last stage",
		} {
			b.instance(kind, process.Succeeded, func(instance *environment.Instance) {
				instance.Request.Cluster.ServiceManager = credentials("old")
			})

			failed := b.failedChange(kind, kind, func(update *environment.Update) { update.Cluster.AutoScalerMin = 6 })
			b.rewrite(kind, func(instance *environment.Instance) {
				instance.GlobalAccountID, instance.SubscriptionAccountID, instance.Exclusive = "second", "ga", "plan:"+kind
				instance.Request.Cluster.ServiceManager = credentials("new")
			})

			want := b.stored(kind)
			want.Request.Cluster.AutoScalerMin = 6
			want.Suspended = kind == environment.KindSuspend

			if want.Suspended {
				want.RuntimeID = ""
			}

			retry, err := b.operations.Get(b.Context(), b.db.Reader(), b.answered(reason, b.intervene("retry", failed, onlyReason)).ID)
			if err != nil || retry.Tenant != "second" {
				b.Errorf("%s: the retry belongs to account %q, %v", reason, retry.Tenant, err)
			}

			b.succeeds(retry)

			got := b.stored(kind)
			got.UpdatedAt = want.UpdatedAt

			if diff := cmp.Diff(want, got); diff != "" {
				b.Errorf("%s: -want +got\n%s", reason, diff)
			}
		}
	})
}
