package orders_test

import (
	"sync"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestUnavailableDatabaseIsReportedSoon checks that the service limits its wait for the database, because GraphQL requests have
// no deadline. The errors must have a code that makes clients retry.
func TestUnavailableDatabaseIsReportedSoon(t *testing.T) {
	const patience = 40 * time.Second

	config, line := postgrestest.Through(t, storagetest.Postgres(t))
	f := newFixture(t, storagetest.Open(t, config))
	operation, runtime := f.provision("tenant", "key", "c-1")

	calls := map[string]func() error{
		"provision": func() error {
			_, err := f.service.Provision(f.Context(), caller("tenant", "other"), order("c-2"))
			return err
		},
		"deprovision": func() error {
			_, err := f.service.Deprovision(f.Context(), caller("tenant", "gone"), runtime)
			return err
		},
		"operation": func() error {
			_, err := f.service.OperationStatus(f.Context(), caller("tenant", ""), operation)
			return err
		},
		"runtime": func() error {
			_, err := f.service.RuntimeStatus(f.Context(), caller("tenant", ""), runtime, orders.RuntimeFields{})

			return err
		},
	}

	line.Freeze()

	var waiting sync.WaitGroup

	for name, call := range calls {
		waiting.Go(func() {
			began := time.Now()

			err := call()
			if mapping := failure.MappingOf(failure.KindOf(err)); mapping.GraphQL != 503 {
				f.Errorf("%s: code %d for %v, want a code that clients retry", name, mapping.GraphQL, err)
			}

			if took := time.Since(began); took > patience {
				f.Errorf("%s took %s", name, took)
			}
		})
	}

	waiting.Wait()
	line.Thaw()

	for _, name := range []string{"operation", "runtime", "provision"} {
		if err := calls[name](); err != nil {
			f.Errorf("%s: after the database recovered: %v", name, err)
		}
	}
}
