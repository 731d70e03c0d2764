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
	// lease is short, so that freezes are short.
	lease = 2 * time.Second
	// orderCount is the number of instances per round, customerCount the number of concurrent customers.
	orderCount    = 250
	customerCount = 40
)

// TestReplicas orders and deletes hundreds of instances while replicas are killed, frozen and stopped and PostgreSQL is
// restarted. Every accepted operation must end, with one Shoot for each remaining instance and no other Shoots.
//
// TEST_SEED repeats a run; SOAK_DURATION adds rounds with new plans for that long.
func TestReplicas(t *testing.T) {
	seed, duration := harness.Seed(t), harness.SoakDuration(t)
	f := newFleet(t, "APP_LEASE_DURATION="+lease.String(), "APP_SHUTDOWN_DELAY=0s", "APP_WORKERS=20")

	var left []*order

	began := time.Now()

	for round := range uint64(1000) {
		left = f.round(seed+round, left)

		if f.Failed() || time.Since(began) > duration {
			return
		}
	}
}

// round deletes the instances of the round before, orders new ones under faults, checks the results, and returns the orders whose instances
// remain.
func (f *fleet) round(seed uint64, before []*order) (left []*order) {
	f.Helper()

	random := rand.New(rand.NewPCG(seed, seed))
	orders := newOrders(random, fmt.Sprintf("i%04x", seed&0xffff), orderCount)
	plan := f.plan(random, len(orders))

	f.Logf("TEST_SEED=%d", seed)

	for _, b := range plan {
		f.Log(b)
	}

	for _, o := range before {
		o.fate = deletedImmediately
	}

	orders = append(before, orders...)

	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()

	began := time.Now()
	load := f.order(ctx, customerCount, orders)

	defer load.customers.Wait()
	defer cancel()

	for _, b := range plan {
		f.until(b.String(), func() bool { return int(load.done.Load()) >= b.after })
		f.inject(b)
	}

	load.customers.Wait()
	f.Logf("%d orders ended within %s", len(orders), time.Since(began).Round(time.Millisecond))

	f.settle(orders)

	return slices.DeleteFunc(orders, func(o *order) bool { return o.fate != stays })
}

// settle waits until all operations have ended, and compares the customers' view with the rows of both services and the garden.
func (f *fleet) settle(orders []*order) {
	f.Helper()
	f.until("every operation to end", func() bool { return f.brokerDB.unfinished()+f.provisionerDB.unfinished() == 0 })

	f.tidyUp()

	f.Logf("the broker's timelines: %s; %s", f.brokerDB.outcomes(), f.brokerDB.troubles())
	f.Logf("the Provisioner's timelines: %s; %s", f.provisionerDB.outcomes(), f.provisionerDB.troubles())

	records := f.brokerDB.all()
	f.brokerDB.check(records)
	f.provisionerDB.check(f.provisionerDB.all())

	var live []string

	for _, o := range orders {
		if o.fate == stays {
			live = append(live, o.id)
		}

		for _, id := range o.accepted {
			f.checkAccepted(o, id, records[id])
		}
	}

	f.checkClusters(live)
}

// checkAccepted reports accepted operations that are missing or were canceled without reason.
func (f *fleet) checkAccepted(o *order, id string, record process.Record) {
	f.Helper()

	switch {
	case record.ID == "":
		f.Errorf("%s: accepted operation %s is missing", o.id, id)
	case record.State == process.Canceled && o.fate == stays:
		f.Errorf("%s: operation %s was canceled without a reason", o.id, id)
	}
}

// checkClusters compares the customers' instances with the rows of both services and with the Shoots.
func (f *fleet) checkClusters(live []string) {
	f.Helper()

	type row struct{ ID, Runtime string }

	instances, err := storage.Select[row](f.Context(), f.brokerDB.db.Reader(),
		`SELECT id, runtime_id || ' ' || shoot_name AS runtime FROM instances`)
	if err != nil {
		f.Fatal(err)
	}

	ordered := make([]string, 0, len(instances))
	wanted := make([]string, 0, len(instances))

	for _, instance := range instances {
		ordered = append(ordered, instance.ID)
		wanted = append(wanted, instance.Runtime)
	}

	f.same("instances", live, ordered)
	f.checkRuntimes(wanted)
}

// tidyUp restarts the Provisioners, which search for orphans at their start, because a frozen replica may have ordered a
// cluster too late.
func (f *fleet) tidyUp() {
	f.Helper()

	for _, m := range f.provisioners.members {
		f.terminate(m)
	}
}

// checkRuntimes compares the expected runtimes, each as its ID and the name of its Shoot, with the Provisioner's rows, with
// Director and with the Shoots.
func (f *fleet) checkRuntimes(wanted []string) {
	f.Helper()

	made, err := storage.Select[string](f.Context(), f.provisionerDB.db.Reader(),
		`SELECT id || ' ' || shoot_name FROM runtimes WHERE deleted_at IS NULL`)
	if err != nil {
		f.Fatal(err)
	}

	ids := make([]string, 0, len(made))

	for _, runtime := range made {
		id, _, _ := strings.Cut(runtime, " ")
		ids = append(ids, id)
	}

	f.same("runtimes", wanted, made)
	f.checkRegistered(ids)

	var shoots []string

	there := func() bool {
		shoots = f.shootsOfRuntimes()

		return len(shoots) == len(made)
	}
	harness.Within(harness.Patience, there)
	f.same("Shoots", made, shoots)
}

// shootsOfRuntimes returns the runtime ID and the name of each Shoot.
func (f *fleet) shootsOfRuntimes() []string {
	f.Helper()

	found := f.shoots()
	owned := make([]string, 0, len(found))

	for _, shoot := range found {
		owned = append(owned, shoot.Annotations["kcp.provisioner.kyma-project.io/runtime-id"]+" "+shoot.Name)
	}

	return owned
}

// same compares two lists regardless of order.
func (f *fleet) same(what string, want, got []string) {
	f.Helper()
	slices.Sort(want)
	slices.Sort(got)

	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%s: -want +got:\n%s", what, diff)
	}
}
