//go:build garden

package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/environment-broker/environment-broker/test/harness"
)

// Kinds of faults.
const (
	faultKill            = "SIGKILL"
	faultFreeze          = "SIGSTOP beyond the lease, then SIGCONT"
	faultTerminate       = "SIGTERM"
	faultRestartDatabase = "restart of PostgreSQL"
)

// fault describes a fault. The test injects it into the fleet when the given number of orders or actions have finished.
type fault struct {
	kind   string
	target *member // nil for the database
	after  int
}

func (f fault) String() string {
	if f.target == nil {
		return fmt.Sprintf("after %3d: %s", f.after, f.kind)
	}

	return fmt.Sprintf("after %3d: %s to %s", f.after, f.kind, f.target.name)
}

// drawFaults draws the faults of a run and their order. Each service with replicas gets every kind of fault. total is the number
// of orders or actions in the run.
func (f *fleet) drawFaults(random *rand.Rand, total int) []fault {
	services := slices.DeleteFunc([]*replicas{f.brokers, f.provisioners}, func(r *replicas) bool { return len(r.members) == 0 })
	draw := func(r *replicas, kind string) fault {
		return fault{kind: kind, target: r.members[random.IntN(len(r.members))]}
	}

	faults := []fault{{kind: faultRestartDatabase}, draw(services[0], faultKill)}
	for _, service := range services {
		faults = append(faults, draw(service, faultKill), draw(service, faultFreeze), draw(service, faultTerminate))
	}

	random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })

	// A freeze needs operations in progress on every replica, so it is not the last fault.
	if last := len(faults) - 1; faults[last].kind == faultFreeze {
		first := slices.IndexFunc(faults, func(each fault) bool { return each.kind != faultFreeze })
		faults[first], faults[last] = faults[last], faults[first]
	}

	// The last fault is injected after 70 % of the orders or actions, so that enough work remains to detect its effects.
	const lastAt = 0.7

	for i := range faults {
		faults[i].after = int(lastAt * float64(total) * float64(i+1) / float64(len(faults)))
	}

	return faults
}

// inject injects a fault and waits until all replicas are ready again.
func (f *fleet) inject(next fault) {
	f.Helper()

	began := time.Now()

	switch next.kind {
	case faultKill:
		f.kill(next.target)
	case faultFreeze:
		f.freeze(next.target)
	case faultTerminate:
		if took := f.terminate(next.target); took > stopLimit {
			f.Errorf("%s took %s to stop, want at most %s", next.target.name, took, stopLimit)
		} else {
			f.Logf("%s stopped within %s", next.target.name, took.Round(time.Millisecond))
		}
	case faultRestartDatabase:
		f.restartDatabase()
	}

	f.Logf("%s: all are ready after %s", next, time.Since(began).Round(time.Millisecond))
}

const (
	// stopLimit is the maximum time that a replica without a shutdown delay may take to stop. docs/operator/running.md promises
	// this limit.
	stopLimit = 25 * time.Second
	// takeoverLimit is the maximum time until other replicas have claimed the operations of a frozen replica. It also applies to
	// the time until the frozen replica, once resumed, logs that it has lost its leases.
	takeoverLimit = 30 * time.Second
	// freezeAttempts limits how often the test tries to freeze a replica that has leases.
	freezeAttempts = 8
	// leaseLost is the message that a replica logs when it writes after its lease has expired.
	leaseLost = "lease lost: another replica continues the operation"
)

// freeze stops a replica with SIGSTOP until other replicas have taken over its operations. After SIGCONT the fence must reject
// the replica's writes. If the replica has no operation, freeze tries the next replica of the service.
func (f *fleet) freeze(first *member) {
	f.Helper()

	rows, members := f.brokerDB, f.brokers.members
	hold := func() (lift func()) { return f.toProvisioner.Hold(harness.Match{}) }

	if strings.HasPrefix(first.name, "provisioner") {
		rows, hold, members = f.provisionerDB, f.toGarden.hold, f.provisioners.members
	}

	for attempt := range freezeAttempts {
		m := members[(slices.Index(members, first)+attempt)%len(members)]
		before, rejectedBefore := rows.takeovers(), strings.Count(m.running.Log(), leaseLost)

		// While the upstream does not respond, the operations stay in progress, so every replica soon has one.
		release := hold()
		allHold := harness.Within(3*time.Second, func() bool { return rows.leaseOwners() >= len(members) })
		m.running.Signal(syscall.SIGSTOP)
		release()

		limit := 3 * lease
		if allHold { // otherwise, the frozen replica may have no operation that others can take over
			limit = takeoverLimit
		}

		stopped := time.Now()
		takenOver := harness.Within(limit, func() bool {
			return time.Since(stopped) > lease && rows.expiredLeases() == 0 && rows.takeovers() > before
		})
		m.running.Signal(syscall.SIGCONT)

		if takenOver && harness.Within(takeoverLimit, func() bool { return strings.Count(m.running.Log(), leaseLost) > rejectedBefore }) {
			f.Logf("%s was frozen for %s; its late writes were rejected", m.name, time.Since(stopped).Round(time.Millisecond))
			f.allReady()

			return
		}
	}

	f.Errorf("replicas from %s on were frozen %d times, but the fence rejected no write; %d operations are unfinished", first.name, freezeAttempts, rows.unfinished())
}

// restartDatabase stops PostgreSQL, waits until every replica reports that it is not ready, and starts PostgreSQL again.
func (f *fleet) restartDatabase() {
	f.Helper()

	if err := f.postgres.Stop(); err != nil {
		f.Fatal(err)
	}

	f.until("every replica to report that it is not ready", func() bool { return f.brokers.readyCount()+f.provisioners.readyCount() == 0 })

	if err := f.postgres.Start(); err != nil {
		f.Fatal(err)
	}

	f.allReady()
}
