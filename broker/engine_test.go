package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/jobs/jobstest"
	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/binding"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// accounts fakes the API servers of runtimes. It stores the ServiceAccounts of bindings.
type accounts struct {
	clock  *clocktesting.FakePassiveClock
	roles  map[string]environment.Role
	issued int
	// fault is the error that every call returns, or nil.
	fault error
}

func (a *accounts) Grant(_ context.Context, _ environment.Instance, made environment.Binding) (environment.Access, error) {
	if a.fault != nil {
		return environment.Access{}, a.fault
	}

	a.roles[made.ID] = made.Role
	a.issued++

	return environment.Access{
		Kubeconfig: secret.String(fmt.Sprintf("kubeconfig %d of %s", a.issued, made.ID)),
		Server:     "https://api.example.com/cluster", ExpiresAt: a.clock.Now().Add(made.Lifetime),
	}, nil
}

func (a *accounts) Revoke(_ context.Context, _ environment.Instance, removed environment.Binding) error {
	if a.fault != nil {
		return a.fault
	}

	delete(a.roles, removed.ID)

	return nil
}

// runBindings runs the due operations on bindings once, like the engine. Synchronous requests call it as their Pause.
func (b *fixture) runBindings(ctx context.Context) error {
	options := binding.Options{
		Runtimes: b.accounts, Bindings: service.NewRows(service.Tables{DB: b.options.DB, Operations: b.operations, Instances: b.instances, Bindings: b.bindings}, b.clock),
	}
	processes := map[string]process.Process[environment.Data]{
		environment.KindBind: binding.Bind(options), environment.KindUnbind: binding.Unbind(options),
	}
	now := b.clock.Now().Add(time.Hour) // at this time leases have expired and waiting operations are due
	claimed := storagetest.Claim(b, b.operations, process.Claim{Owner: "test", Limit: 100, Now: now, Until: now.Add(time.Minute)},
		environment.KindBind, environment.KindUnbind)

	ended := false

	for _, work := range claimed {
		progress := process.Progress{Release: true, Now: b.clock.Now()}
		progress.Record, progress.Effect = b.run(ctx, processes[work.Record.Kind], work.Record)

		if progress.Record.State.Terminal() {
			progress.Record.FinishedAt, ended = b.clock.Now(), true
		}

		if _, err := b.operations.Save(ctx, progress); err != nil {
			return err
		}
	}

	if !ended {
		return context.DeadlineExceeded // more attempts would fail, too
	}

	return nil
}

// run runs the steps of an operation. It returns the resulting record and, after a success, the effect.
func (b *fixture) run(ctx context.Context, carried process.Process[environment.Data], record process.Record) (process.Record, process.Effect) {
	b.Helper()

	var data environment.Data
	if err := json.Unmarshal(record.Payload, &data); err != nil {
		b.Fatal(err)
	}

	operation := process.NewOperation(record, data, b.clock.Now())

	for _, stage := range carried.Stages {
		for _, task := range stage.Steps {
			var err error
			if operation, _, err = task.Step.Run(ctx, operation, logging.Discard()); err != nil {
				record.State, record.Problem = process.Failed, process.Problem{Message: failure.Of(err).Text}
				if failure.MappingOf(failure.KindOf(err)).Retry {
					record.State = process.InProgress
				}

				return record, nil
			}
		}
	}

	record.State = process.Succeeded

	return record, operation.Effect
}

// runs creates an instance with a runtime that is ready.
func (b *fixture) runs(id string) {
	b.Helper()
	b.provisioned(id)

	b.ranOn(id, "runtime-of-"+id)
}

func (b *fixture) carries() {
	b.Helper()

	if err := b.runBindings(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func (b *fixture) expires() {
	b.Helper()

	if err := jobstest.Run(b.Context(), broker.ExpiryOfBindings(b.options, 0)); err != nil {
		b.Fatal(err)
	}
}

func (b *fixture) provisioned(id string) string {
	b.Helper()

	operation := b.want("a new instance is accepted", b.put(id, order()), 202).text("operation")
	b.move(operation, process.Succeeded)

	return operation
}

// move claims all due operations, like the engine, and releases them. It saves the given operation with the state and
// the changes, and the others unchanged.
func (b *fixture) move(operation string, state process.State, changes ...func(*process.Record)) {
	b.Helper()

	const lease = time.Minute

	now := b.clock.Now().Add(24 * time.Hour) // waiting operations are due at this time

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

// succeed completes an update, a suspension or a resumption: it updates the instance, then ends the operation.
func (b *fixture) succeed(operation string) {
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

// rewrite changes the row of an instance directly, without an operation.
func (b *fixture) rewrite(id string, change func(*environment.Instance)) {
	b.Helper()

	instance := b.stored(id)
	change(&instance)

	if err := b.options.DB.InTx(b.Context(), func(tx storage.Tx) error {
		return b.instances.Update(b.Context(), tx, instance)
	}); err != nil {
		b.Fatal(err)
	}
}

// change returns the update in the data of an operation.
func (b *fixture) change(operation string) environment.Update {
	b.Helper()

	var data environment.Data
	if err := json.Unmarshal(b.payload(operation), &data); err != nil || data.Update == nil {
		b.Fatalf("the operation has no update: %v", err)
	}

	return *data.Update
}

// waiting adds an attempt with the outcome waiting and the message to the timeline of an operation.
func (b *fixture) waiting(operation, message string) {
	b.Helper()

	now := b.clock.Now().Add(24 * time.Hour)

	claimed := storagetest.Claim(b, b.operations, process.Claim{
		Owner: "test", Limit: 1, Now: now, Until: now.Add(time.Minute),
	}, environment.KindProvision)
	if len(claimed) != 1 || claimed[0].Record.ID != operation {
		b.Fatalf("operation %s is not the due one: %v", operation, claimed)
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

// deleted deletes an instance: it requests the deletion, removes the row, and ends the operation.
func (b *fixture) deleted(id string) {
	b.Helper()

	operation := b.want("a deletion is accepted", b.remove(id), 202).text("operation")

	b.forget(id)
	b.move(operation, process.Succeeded)
}

func (b *fixture) cancelOne(operation string) {
	b.Helper()

	err := b.options.DB.InTx(b.Context(), func(tx storage.Tx) error {
		_, err := b.operations.CancelOne(b.Context(), tx, operation, "canceled by an operator", b.clock.Now())

		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

// forget deletes the row of an instance directly, without an operation.
func (b *fixture) forget(id string) {
	b.Helper()

	if err := b.delete(b.Context(), id); err != nil {
		b.Fatal(err)
	}
}

func (b *fixture) delete(ctx context.Context, id string) error {
	_, err := storage.Exec(ctx, b.options.DB.Writer(), `DELETE FROM instances WHERE id = ?`, b.stored(id).ID)

	return err
}

// ranOn sets the runtime ID of an instance. An empty ID means that the instance has no runtime.
func (b *fixture) ranOn(id, runtimeID string) {
	b.Helper()

	b.rewrite(id, func(instance *environment.Instance) { instance.RuntimeID = runtimeID })
}

func (b *fixture) stored(id string) environment.Instance {
	b.Helper()

	instance, err := b.instances.Get(b.Context(), b.operations.Reader(), id)
	if err != nil {
		b.Fatal(err)
	}

	return instance
}

func (b *fixture) carried(id string) []process.Record {
	b.Helper()

	records, err := b.operations.OfInstance(b.Context(), b.operations.Reader(), id)
	if err != nil {
		b.Fatal(err)
	}

	return records
}

func (b *fixture) payload(id string) json.RawMessage {
	b.Helper()

	payload, err := b.operations.Payload(b.Context(), b.operations.Reader(), id)
	if err != nil {
		b.Fatal(err)
	}

	return payload
}

func decoded(b *fixture, raw json.RawMessage, into any) {
	b.Helper()

	if err := json.Unmarshal(raw, into); err != nil {
		b.Fatal(err)
	}
}
