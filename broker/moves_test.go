package broker_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// order is the body of a provision that succeeds, with fields replaced or, by nil, taken away.
func order(changes ...map[string]any) string {
	fields := map[string]any{
		"service_id": serviceID, "plan_id": planAWS, "organization_guid": "org-1", "space_guid": "space-1",
		"context":    map[string]any{"platform": "cloudfoundry", "instance_name": "mine"},
		"parameters": map[string]any{"region": "eu-west-1", "autoScalerMin": 4},
	}

	for _, change := range changes {
		for name, value := range change {
			fields[name] = value
			if value == nil {
				delete(fields, name)
			}
		}
	}

	encoded, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}

	return string(encoded)
}

// with is a change of order.
func with(name string, value any) map[string]any { return map[string]any{name: value} }

func path(id string) string { return "/v2/service_instances/" + id }

func (b *bench) put(id, body string) reply {
	b.Helper()

	return b.do(call{method: "PUT", path: path(id) + "?accepts_incomplete=true", body: body})
}

func (b *bench) get(id string) reply {
	b.Helper()

	return b.do(call{method: "GET", path: path(id)})
}

func (b *bench) remove(id string) reply {
	b.Helper()

	return b.do(call{method: "DELETE", path: path(id) + "?accepts_incomplete=true" + ids})
}

func (b *bench) poll(id, operation string) reply {
	b.Helper()

	query := ""
	if operation != "" {
		query = "?operation=" + operation
	}

	return b.do(call{method: "GET", path: path(id) + "/last_operation" + query})
}

// provisioned makes an instance that is ready and returns its operation.
func (b *bench) provisioned(id string) string {
	b.Helper()

	operation := b.want("a new instance is accepted", b.put(id, order()), 202).text("operation")
	b.move(operation, process.Succeeded)

	return operation
}

// move carries an operation to a state as the engine does, with the changes to its record. InProgress keeps it under way.
func (b *bench) move(operation string, state process.State, changes ...func(*process.Record)) {
	b.Helper()

	const lease = time.Minute

	now := b.clock.Now().Add(24 * time.Hour) // whatever it waits for has come by then

	claimed := storagetest.Claim(b, b.operations, process.Claim{
		Owner: "test", Limit: 100, Now: now, Until: now.Add(lease),
	}, environment.Kinds()...)

	if !slices.ContainsFunc(claimed, func(work process.Claimed) bool { return work.Record.ID == operation }) {
		b.Fatalf("operation %s is not due", operation)
	}

	for _, work := range claimed {
		progress := process.Progress{Record: work.Record, Release: true, Now: b.clock.Now()}
		progress.Record.NextRun = b.clock.Now()

		if work.Record.ID == operation {
			progress.Record.State = state

			for _, change := range changes {
				change(&progress.Record)
			}
		}

		if _, err := b.operations.Save(b.Context(), progress); err != nil {
			b.Fatal(err)
		}
	}
}

// patch sends an update of the fields; the service is named unless the fields say otherwise.
func (b *bench) patch(id string, fields map[string]any) reply {
	b.Helper()

	return b.do(call{method: "PATCH", path: path(id) + "?accepts_incomplete=true", body: patching(fields)})
}

func patching(fields map[string]any) string {
	sent := map[string]any{"service_id": serviceID}
	maps.Copy(sent, fields)

	encoded, err := json.Marshal(sent)
	if err != nil {
		panic(err)
	}

	return string(encoded)
}

// succeed lets an update, a suspension or a resumption succeed: what it makes of the instance is recorded, then it ends.
func (b *bench) succeed(operation string) {
	b.Helper()

	record, err := b.operations.Get(b.Context(), b.operations.Reader(), operation)
	if err != nil {
		b.Fatal(err)
	}

	var data environment.Data
	if err := json.Unmarshal(b.payload(operation), &data); err != nil {
		b.Fatal(err)
	}

	b.rewrite(record.InstanceID, func(instance *environment.Instance) {
		instance.Suspended = record.Kind == environment.KindSuspend

		if data.Update != nil {
			if *instance, err = data.Update.Apply(*instance); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.move(operation, process.Succeeded)
}

// rewrite changes the row of an instance.
func (b *bench) rewrite(id string, change func(*environment.Instance)) {
	b.Helper()

	instance := b.stored(id)
	change(&instance)

	if err := b.options.DB.InTx(b.Context(), func(tx storage.Tx) error {
		return b.instances.Update(b.Context(), tx, instance)
	}); err != nil {
		b.Fatal(err)
	}
}

// change is what an operation is to make of its instance.
func (b *bench) change(operation string) environment.Update {
	b.Helper()

	var data environment.Data
	if err := json.Unmarshal(b.payload(operation), &data); err != nil || data.Update == nil {
		b.Fatalf("the operation has no change: %v", err)
	}

	return *data.Update
}

// waiting leaves a line in the timeline: an attempt that came back with a message.
func (b *bench) waiting(operation, message string) {
	b.Helper()

	now := b.clock.Now().Add(24 * time.Hour)

	claimed := storagetest.Claim(b, b.operations, process.Claim{
		Owner: "test", Limit: 1, Now: now, Until: now.Add(time.Minute),
	}, environment.KindProvision)
	if len(claimed) != 1 || claimed[0].Record.ID != operation {
		b.Fatalf("operation %s is not the one that is due: %v", operation, claimed)
	}

	progress := process.Progress{Record: claimed[0].Record, Release: true, Now: b.clock.Now(), Timeline: []process.Entry{{
		Stage: "check_runtime", Step: "Check_Runtime", Attempt: 1, Began: now, End: now, Outcome: process.Waiting, Message: message,
	}}}
	progress.Record.Stage, progress.Record.Step, progress.Record.NextRun = "check_runtime", "Check_Runtime", b.clock.Now()
	progress.Record.Progress = message

	if _, err := b.operations.Save(b.Context(), progress); err != nil {
		b.Fatal(err)
	}
}

// deleted makes an instance go: its row first, then its operation ends.
func (b *bench) deleted(id string) {
	b.Helper()

	operation := b.want("a deletion is accepted", b.remove(id), 202).text("operation")

	b.forget(id)
	b.move(operation, process.Succeeded)
}

// cancelOne has an operator cancel an operation.
func (b *bench) cancelOne(operation string) {
	b.Helper()

	err := b.options.DB.InTx(b.Context(), func(tx storage.Tx) error {
		_, err := b.operations.CancelOne(b.Context(), tx, operation, "an operator wants it", b.clock.Now())

		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

// forget is the last step of a deletion.
func (b *bench) forget(id string) {
	b.Helper()

	if err := b.delete(b.Context(), id); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) delete(ctx context.Context, id string) error {
	_, err := storage.Exec(ctx, b.options.DB.Writer(), `DELETE FROM instances WHERE id = ?`, b.stored(id).ID)

	return err
}

// ranOn has the instance have a runtime, or none.
func (b *bench) ranOn(id, runtimeID string) {
	b.Helper()

	if _, err := storage.Exec(b.Context(), b.options.DB.Writer(), `UPDATE instances SET runtime_id = ? WHERE id = ?`, runtimeID, id); err != nil {
		b.Fatal(err)
	}
}

// stored returns the instance as it is stored.
func (b *bench) stored(id string) environment.Instance {
	b.Helper()

	instance, err := b.instances.Get(b.Context(), b.operations.Reader(), id)
	if err != nil {
		b.Fatal(err)
	}

	return instance
}

// carried returns the operations of an instance, the newest first.
func (b *bench) carried(id string) []process.Record {
	b.Helper()

	records, err := b.operations.OfInstance(b.Context(), b.operations.Reader(), id)
	if err != nil {
		b.Fatal(err)
	}

	return records
}

// payload is the data of an operation.
func (b *bench) payload(id string) json.RawMessage {
	b.Helper()

	payload, err := b.operations.Payload(b.Context(), b.operations.Reader(), id)
	if err != nil {
		b.Fatal(err)
	}

	return payload
}

func decoded(b *bench, raw json.RawMessage, into any) {
	b.Helper()

	if err := json.Unmarshal(raw, into); err != nil {
		b.Fatal(err)
	}
}
