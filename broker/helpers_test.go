package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/binding"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// accounts are those of all runtimes, by the bindings that they belong to.
type accounts struct {
	clock  *clocktesting.FakePassiveClock
	roles  map[string]environment.Role
	issued int
	// fault, if set, is what every runtime answers.
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

// carry carries what is due of bindings as the engine does. A request that waits has it done while it waits.
func (b *bench) carry(ctx context.Context) error {
	options := binding.Options{
		Runtimes: b.accounts, Bindings: service.NewRows(b.options.DB, b.operations, b.instances, b.bindings, b.clock),
	}
	processes := map[string]process.Process[environment.Data]{
		environment.KindBind: binding.Bind(options), environment.KindUnbind: binding.Unbind(options),
	}
	now := b.clock.Now().Add(time.Hour) // leases are over, and what waits is due
	claimed := storagetest.Claim(b, b.operations, process.Claim{Owner: "test", Limit: 100, Now: now, Until: now.Add(time.Minute)},
		environment.KindBind, environment.KindUnbind)

	ended := false

	for _, work := range claimed {
		progress := process.Progress{Record: b.run(ctx, processes[work.Record.Kind], work.Record), Release: true, Now: b.clock.Now()}
		if progress.Record.State.Terminal() {
			progress.Record.FinishedAt, ended = b.clock.Now(), true
		}

		if _, err := b.operations.Save(ctx, progress); err != nil {
			return err
		}
	}

	if !ended {
		return context.DeadlineExceeded // nothing will come of waiting longer
	}

	return nil
}

// run runs the steps of an operation, and tells how it then is.
func (b *bench) run(ctx context.Context, carried process.Process[environment.Data], record process.Record) process.Record {
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

				return record
			}
		}
	}

	record.State = process.Succeeded

	return record
}

// runs makes an instance that has a runtime.
func (b *bench) runs(id string) {
	b.Helper()
	b.provisioned(id)

	b.ranOn(id, "runtime-of-"+id)
}

// bindOf is the body of a request for a binding, with more fields.
func bindOf(more string) string {
	return `{"service_id":"` + serviceID + `","plan_id":"` + planAWS + `"` + more + `}`
}

const role = `,"parameters":{"role":"view","expiration_seconds":1200}`

func bindingOf(id, binding string) string { return path(id) + "/service_bindings/" + binding }

// bind sends a request for a binding of the instance, of a platform that waits.
func (b *bench) bind(binding, more string) reply {
	b.Helper()

	return b.do(call{method: "PUT", path: bindingOf(instanceID, binding), body: bindOf(more)})
}

// bindLater sends one of a platform that polls.
func (b *bench) bindLater(binding, more string) reply {
	b.Helper()

	return b.do(call{method: "PUT", path: bindingOf(instanceID, binding) + "?accepts_incomplete=true", body: bindOf(more)})
}

func (b *bench) unbind(binding, query string) reply {
	b.Helper()

	return b.do(call{method: "DELETE", path: bindingOf(instanceID, binding) + "?" + ids[1:] + query})
}

func (b *bench) getBinding(binding string) reply {
	b.Helper()

	return b.do(call{method: "GET", path: bindingOf(instanceID, binding)})
}

func (b *bench) pollBinding(binding, operation string) reply {
	b.Helper()

	return b.do(call{method: "GET", path: bindingOf(instanceID, binding) + "/last_operation?operation=" + operation})
}

// carries has the engine take its turn.
func (b *bench) carries() {
	b.Helper()

	if err := b.carry(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// expires has a replica look for what is over, and the engine remove it.
func (b *bench) expires() {
	b.Helper()

	if err := broker.ExpireBindings(b.Context(), b.options); err != nil {
		b.Fatal(err)
	}
}

// onRunning runs the test on both databases with an instance that has a runtime.
func onRunning(t *testing.T, test func(b *bench)) {
	t.Helper()

	onEach(t, func(b *bench) {
		b.runs(instanceID)
		test(b)
	})
}
