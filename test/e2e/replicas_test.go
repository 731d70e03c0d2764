//go:build garden

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	// lease is short, because the tests keep a frozen replica stopped until its leases have expired.
	lease = 2 * time.Second
	// orderCount is the number of instances per round, and soakOrderCount the number if SOAK_DURATION is set.
	orderCount     = 120
	soakOrderCount = 250
	// customerCount is the number of concurrent customers.
	customerCount = 40
)

// TestReplicas orders and deletes more than a hundred instances while replicas are killed, frozen and stopped, and PostgreSQL is
// restarted. Every accepted operation must end. Each remaining instance must have one Shoot, and no other Shoots may remain.
//
// TEST_SEED repeats a run. The test starts new rounds, each with a new seed, until SOAK_DURATION has passed.
func TestReplicas(t *testing.T) {
	seed, duration := harness.Seed(t), harness.SoakDuration(t)
	f := newFleet(t, "APP_LEASE_DURATION="+lease.String(), "APP_SHUTDOWN_DELAY=0s", "APP_WORKERS=20")

	count := orderCount
	if duration > 0 {
		count = soakOrderCount
	}

	var remaining []*order

	began := time.Now()

	for round := range uint64(1000) {
		remaining = f.runRound(seed+round, count, remaining)

		if f.Failed() || time.Since(began) > duration {
			return
		}
	}
}

// runRound deletes the instances of the previous round, orders count new instances under faults, and checks the results. It returns the
// orders whose instances remain.
func (f *fleet) runRound(seed uint64, count int, before []*order) (remaining []*order) {
	f.Helper()

	random := rand.New(rand.NewPCG(seed, seed))
	orders := newOrders(random, fmt.Sprintf("i%04x", seed&0xffff), count)
	faults := f.drawFaults(random, len(orders))

	f.Logf("TEST_SEED=%d", seed)

	for _, next := range faults {
		f.Log(next)
	}

	for _, o := range before {
		o.outcome = deletedImmediately
	}

	orders = append(before, orders...)

	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()

	began := time.Now()
	load := f.order(ctx, customerCount, orders)

	defer load.customers.Wait()
	defer cancel()

	for _, next := range faults {
		f.until(next.String(), func() bool { return int(load.done.Load()) >= next.after })
		f.inject(next)
	}

	load.customers.Wait()
	f.Logf("%d orders ended within %s", len(orders), time.Since(began).Round(time.Millisecond))

	f.checkResults(orders)

	return slices.DeleteFunc(orders, func(o *order) bool { return o.outcome != stays })
}

// checkResults waits until all operations have ended and compares the results that the customers saw with both databases and
// the garden.
func (f *fleet) checkResults(orders []*order) {
	f.Helper()
	f.until("every operation to end", func() bool { return f.brokerDB.unfinished()+f.provisionerDB.unfinished() == 0 })

	f.removeOrphans()

	f.Logf("the broker's timelines: %s; %s", f.brokerDB.outcomes(), f.brokerDB.retryReasons())
	f.Logf("the Provisioner's timelines: %s; %s", f.provisionerDB.outcomes(), f.provisionerDB.retryReasons())

	records := f.brokerDB.records()
	f.brokerDB.checkTimelines(records)
	f.provisionerDB.checkTimelines(f.provisionerDB.records())

	var live []string

	for _, o := range orders {
		if o.outcome == stays {
			live = append(live, o.id)
		}

		for _, id := range o.accepted {
			f.checkAccepted(o, id, records[id])
		}
	}

	f.checkClusters(live)
}

// checkAccepted fails the test if an accepted operation is missing, or if it was canceled without a deletion of its instance.
func (f *fleet) checkAccepted(o *order, id string, record process.Record) {
	f.Helper()

	switch {
	case record.ID == "":
		f.Errorf("%s: accepted operation %s is missing", o.id, id)
	case record.State == process.Canceled && o.outcome == stays:
		f.Errorf("%s: operation %s was canceled without a reason", o.id, id)
	}
}

// checkClusters compares the instances that the customers have with the rows of both services and with the Shoots.
func (f *fleet) checkClusters(live []string) {
	f.Helper()

	type row struct{ ID, Runtime string }

	instances, err := storage.Select[row](f.Context(), f.brokerDB.db.Reader(),
		`SELECT id, runtime_id || ' ' || shoot_name AS runtime FROM instances`)
	if err != nil {
		f.Fatal(err)
	}

	ordered := make([]string, 0, len(instances))
	runtimes := make([]string, 0, len(instances))

	for _, instance := range instances {
		ordered = append(ordered, instance.ID)
		runtimes = append(runtimes, instance.Runtime)
	}

	f.wantEqual("instances", live, ordered)
	f.checkRuntimes(runtimes)
}

// removeOrphans restarts the replicas of the Provisioner, because a replica removes orphaned Shoots when it starts. There may be
// such Shoots, because a frozen replica may have created one after another replica had taken over its operation.
func (f *fleet) removeOrphans() {
	f.Helper()

	for _, m := range f.provisioners.members {
		f.terminate(m)
	}
}

// checkRuntimes compares the expected runtimes with the Provisioner's rows, with Director and with the Shoots. Each element of
// want is the ID of a runtime and the name of its Shoot, separated by a space.
func (f *fleet) checkRuntimes(want []string) {
	f.Helper()

	recorded, err := storage.Select[string](f.Context(), f.provisionerDB.db.Reader(),
		`SELECT id || ' ' || shoot_name FROM runtimes WHERE deleted_at IS NULL`)
	if err != nil {
		f.Fatal(err)
	}

	ids := make([]string, 0, len(recorded))

	for _, runtime := range recorded {
		id, _, _ := strings.Cut(runtime, " ")
		ids = append(ids, id)
	}

	f.wantEqual("runtimes", want, recorded)
	f.checkRegistered(ids)

	var shoots []string

	complete := func() bool {
		shoots = f.shootsOfRuntimes()

		return len(shoots) == len(recorded)
	}
	harness.Within(harness.Patience, complete)
	f.wantEqual("Shoots", recorded, shoots)
}

// shootsOfRuntimes returns the runtime ID and the name of each Shoot, separated by a space.
func (f *fleet) shootsOfRuntimes() []string {
	f.Helper()

	found := f.shoots()
	owned := make([]string, 0, len(found))

	for _, shoot := range found {
		owned = append(owned, shoot.Annotations["kcp.provisioner.kyma-project.io/runtime-id"]+" "+shoot.Name)
	}

	return owned
}

// wantEqual compares two lists without regard to order.
func (f *fleet) wantEqual(what string, want, got []string) {
	f.Helper()
	slices.Sort(want)
	slices.Sort(got)

	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%s: -want +got:\n%s", what, diff)
	}
}
