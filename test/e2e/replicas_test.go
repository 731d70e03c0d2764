//go:build garden

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// lease is short, so that a freeze is too.
	lease = 2 * time.Second
	// orderCount is how many instances are ordered in a round, customerCount how many at the same time.
	orderCount    = 250
	customerCount = 40
)

// TestReplicas has customers order and delete hundreds of instances while replicas are killed, frozen and stopped and PostgreSQL is
// restarted. In the end every operation that was accepted is at its end, and there is a Shoot for each instance that is left and no other.
//
// STORY_SEED repeats a plan, SOAK_DURATION goes on with new plans until that time has passed.
func TestReplicas(t *testing.T) {
	seed, duration := storySettings(t)
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

func storySettings(t *testing.T) (seed uint64, duration time.Duration) {
	t.Helper()

	seed = rand.Uint64()

	var err error

	if text := os.Getenv("STORY_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("STORY_SEED: %v", err)
		}
	}

	if text := os.Getenv("SOAK_DURATION"); text != "" {
		if duration, err = time.ParseDuration(text); err != nil {
			t.Fatalf("SOAK_DURATION: %v", err)
		}
	}

	return seed, duration
}

// round has the instances of the round before deleted and new ones ordered, strikes meanwhile, checks all that there is, and returns the
// orders whose instances are left.
func (f *fleet) round(seed uint64, before []*order) (left []*order) {
	f.Helper()

	random := rand.New(rand.NewPCG(seed, seed))
	orders := newOrders(random, fmt.Sprintf("i%04x", seed&0xffff), orderCount)
	plan := f.plan(random, len(orders))

	f.Logf("STORY_SEED=%d", seed)

	for _, b := range plan {
		f.Log(b)
	}

	for _, o := range before {
		o.fate = deletedAtOnce
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
		f.strike(b)
	}

	load.customers.Wait()
	f.Logf("%d orders were carried out within %s", len(orders), time.Since(began).Round(time.Millisecond))

	f.settle(orders)

	return slices.DeleteFunc(orders, func(o *order) bool { return o.fate != stays })
}

// settle waits until nothing is left to do, and checks what the customers were told against the rows of both services and the garden.
func (f *fleet) settle(orders []*order) {
	f.Helper()
	f.until("every operation to end", func() bool { return f.brokerBooks.unfinished()+f.provisionerBooks.unfinished() == 0 })

	f.tidyUp()

	f.Logf("the broker's timelines: %s; %s", f.brokerBooks.outcomes(), f.brokerBooks.troubles())
	f.Logf("the Provisioner's timelines: %s; %s", f.provisionerBooks.outcomes(), f.provisionerBooks.troubles())

	records := f.brokerBooks.all()
	f.brokerBooks.check(records)
	f.provisionerBooks.check(f.provisionerBooks.all())

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

// checkAccepted finds operations that were accepted and not carried out.
func (f *fleet) checkAccepted(o *order, id string, record process.Record) {
	f.Helper()

	switch {
	case record.ID == "":
		f.Errorf("%s: operation %s was accepted and is not there", o.id, id)
	case record.State == process.Canceled && o.fate == stays:
		f.Errorf("%s: operation %s was canceled by nobody", o.id, id)
	}
}

// checkClusters compares the instances that the customers have with the rows of both services and with the Shoots.
func (f *fleet) checkClusters(live []string) {
	f.Helper()

	type row struct{ ID, Runtime string }

	instances, err := storage.Select[row](f.Context(), f.brokerBooks.db.Reader(),
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

// tidyUp has the Provisioners look for what nobody needs, as they do when they start: a replica that was frozen may have ordered a cluster
// too late.
func (f *fleet) tidyUp() {
	f.Helper()

	for _, m := range f.provisioners.members {
		f.terminate(m)
	}
}

// checkRuntimes compares the runtimes that there are to be, each as its id and the name of its Shoot, with the Provisioner's rows, with
// Director and with the Shoots.
func (f *fleet) checkRuntimes(wanted []string) {
	f.Helper()

	made, err := storage.Select[string](f.Context(), f.provisionerBooks.db.Reader(),
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
	within(patience, there)
	f.same("Shoots", made, shoots)
}

// shootsOfRuntimes tells of each Shoot whose it is.
func (f *fleet) shootsOfRuntimes() []string {
	f.Helper()

	found := f.shoots()
	owned := make([]string, 0, len(found))

	for _, shoot := range found {
		owned = append(owned, shoot.Annotations["kcp.provisioner.kyma-project.io/runtime-id"]+" "+shoot.Name)
	}

	return owned
}

// same compares two lists whose order does not matter.
func (f *fleet) same(what string, want, got []string) {
	f.Helper()
	slices.Sort(want)
	slices.Sort(got)

	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%s: -want +got:\n%s", what, diff)
	}
}
