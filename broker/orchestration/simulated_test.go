package orchestration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/crashtest"
	"github.com/environment-broker/environment-broker/process/orchestrating"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
	"github.com/environment-broker/environment-broker/process/upgradecluster"
	"github.com/environment-broker/environment-broker/process/upgrading"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// simulated is a Provisioner. An upgrade takes upgradeTime, and fails for the instances in failing. Repeated orders with the same
// idempotency key return the same operation.
type simulated struct {
	*fixture

	mutex sync.Mutex
	// ready is when each operation ends, by idempotency key. keys are the keys of the orders for each instance.
	ready map[string]time.Time
	keys  map[string][]string
	// chosen is the instance whose owner has chosen chosenAt.
	chosen   string
	chosenAt time.Time
}

// through returns the Provisioner as a replica reaches it.
func (s *simulated) through(proxy *crashtest.Proxy) reached { return reached{s, proxy} }

type reached struct {
	*simulated

	proxy *crashtest.Proxy
}

// call makes a call. An injected fault is a transient error, as in the client of the Provisioner.
func (r reached) call(ctx context.Context, name string, call func()) error {
	err := r.proxy.Call(ctx, name, func(context.Context) error {
		r.mutex.Lock()
		defer r.mutex.Unlock()

		call()

		return nil
	})
	if err != nil {
		return failure.Wrap(failure.Transient, err, "the Provisioner does not respond")
	}

	return nil
}

func (r reached) UpgradeRuntime(ctx context.Context, caller provisionerclient.Caller, instance, _ environment.Instance) (provisionerclient.Operation, error) {
	err := r.call(ctx, "UpgradeRuntime", func() {
		if _, repeated := r.ready[caller.IdempotencyKey]; !repeated {
			r.ready[caller.IdempotencyKey] = time.Now().Add(r.upgradeTime)
			r.keys[instance.ID] = append(r.keys[instance.ID], caller.IdempotencyKey)
		}
	})

	return provisionerclient.Operation{ID: instance.ID + " " + caller.IdempotencyKey, State: provisionerclient.StateInProgress}, err
}

func (r reached) OperationStatus(ctx context.Context, _, id string) (status provisionerclient.Operation, err error) {
	var instanceID, key string
	if _, err := fmt.Sscan(id, &instanceID, &key); err != nil {
		return status, failure.Wrap(failure.Permanent, err, "unknown operation")
	}

	err = r.call(ctx, "OperationStatus", func() {
		status = provisionerclient.Operation{ID: id, State: provisionerclient.StateInProgress}

		switch {
		case time.Now().Before(r.ready[key]):
		case r.fails(instanceID):
			status.State = provisionerclient.StateFailed
		default:
			status.State = provisionerclient.StateSucceeded
		}
	})

	return status, err
}

// rows gives the broker's processes access to the instances of the fixture.
type rows struct{ *fixture }

func (r rows) Find(ctx context.Context, id string) (environment.Instance, error) {
	found, err := r.Conductor.Planner.Upgrader.Instances.Get(ctx, r.db.Reader(), id)
	if err != nil {
		return found, failure.Wrap(failure.Transient, err, "reading the instance")
	}

	return found, nil
}

func (r rows) RuntimeEnding(context.Context, string) (bool, error) { return false, nil }

func (r rows) Update(known environment.Instance, update environment.Update) process.Effect {
	return operations.Effect(func(ctx context.Context, tx storage.Tx) error {
		store := r.Conductor.Planner.Upgrader.Instances

		present, err := store.Hold(ctx, tx, known, time.Now())
		if err != nil {
			return failure.Wrap(failure.Transient, err, "locking the instance")
		}

		changed, err := update.Apply(present)

		return errors.Join(err, store.Update(ctx, tx, changed))
	})
}

// realProcesses returns the processes of a broker that upgrades clusters with the simulated Provisioner.
func (s *simulated) realProcesses(proxy *crashtest.Proxy) []process.Process[environment.Data] {
	provisioner := s.through(proxy)

	return []process.Process[environment.Data]{
		upgradecluster.Process(upgradecluster.Options{
			Provisioner: provisioner,
			Options: upgrading.Options{Instances: rows{s.fixture}, Waiter: provisionerwait.Waiter{
				Operations: provisioner, Limit: time.Hour, Pace: func(time.Duration) time.Duration { return s.upgradeTime },
			}},
		}),
		orchestrating.Process(orchestrating.Options{Orchestrations: proxied{s.Conductor, proxy}}),
	}
}

// started is an upgrade in the database.
type started struct {
	ID         string       `db:"id"`
	InstanceID string       `db:"instance_id"`
	Region     string       `db:"region"`
	Provider   string       `db:"provider"`
	Reason     string       `db:"problem_reason"`
	CreatedAt  storage.Time `db:"created_at"`
	StartedAt  storage.Time `db:"started_at"`
	FinishedAt storage.Time `db:"finished_at"`
}

// allUpgrades returns all upgrades of clusters.
func (f *fixture) allUpgrades() []started {
	f.Helper()

	all, err := storage.Select[started](f.Context(), f.db.Reader(), `SELECT operations.id, instance_id, region, provider, problem_reason, operations.created_at,
		started_at, finished_at FROM operations JOIN instances ON instances.id = instance_id WHERE kind = 'upgradeCluster'`)
	if err != nil {
		f.Fatal(err)
	}

	return all
}

// wantAtOnce checks that the number of unfinished upgrades never exceeded the limits: in total, in a region and at a provider.
func (f *fixture) wantAtOnce(all, region, provider int) {
	f.Helper()

	type change struct {
		at    time.Time
		count int
	}

	changes, limits := map[string][]change{}, map[string]int{}

	for _, upgrade := range f.allUpgrades() {
		for group, limit := range map[string]int{"all": all, "region " + upgrade.Region: region, "provider " + upgrade.Provider: provider} {
			limits[group] = limit
			changes[group] = append(changes[group], change{upgrade.CreatedAt.Time, 1}, change{upgrade.FinishedAt.Time, -1})
		}
	}

	for group, changes := range changes {
		slices.SortFunc(changes, func(a, b change) int {
			if order := a.at.Compare(b.at); order != 0 {
				return order
			}

			return a.count - b.count // ends first
		})

		running, most := 0, 0
		for _, change := range changes {
			running += change.count
			most = max(most, running)
		}

		if most > limits[group] {
			f.Errorf("%s: %d upgrades at once, the limit is %d", group, most, limits[group])
		}
	}
}
