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
	killed       = "SIGKILL"
	frozen       = "SIGSTOP beyond the lease, then SIGCONT"
	terminated   = "SIGTERM"
	databaseAway = "restart of PostgreSQL"
)

// fault is injected into the fleet after a number of finished orders or actions.
type fault struct {
	how    string
	target *member // nil for the database
	after  int
}

func (b fault) String() string {
	if b.target == nil {
		return fmt.Sprintf("after %3d: %s", b.after, b.how)
	}

	return fmt.Sprintf("after %3d: %s to %s", b.after, b.how, b.target.name)
}

// plan draws faults and their order. It contains every kind of fault, on each service that has replicas.
func (f *fleet) plan(random *rand.Rand, toDo int) []fault {
	services := slices.DeleteFunc([]*replicas{f.brokers, f.provisioners}, func(r *replicas) bool { return len(r.members) == 0 })
	hit := func(r *replicas, how string) fault {
		return fault{how: how, target: r.members[random.IntN(len(r.members))]}
	}

	faults := []fault{{how: databaseAway}, hit(services[0], killed)}
	for _, service := range services {
		faults = append(faults, hit(service, killed), hit(service, frozen), hit(service, terminated))
	}

	random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })

	// The last faults happen while enough load remains.
	const lastAt = 0.7

	for i := range faults {
		faults[i].after = int(lastAt * float64(toDo) * float64(i+1) / float64(len(faults)))
	}

	return faults
}

// inject injects the fault and waits until all replicas are ready again.
func (f *fleet) inject(b fault) {
	f.Helper()

	began := time.Now()

	switch b.how {
	case killed:
		f.kill(b.target)
	case frozen:
		f.freeze(b.target)
	case terminated:
		if took := f.terminate(b.target); took > stopLimit {
			f.Errorf("%s took %s to stop, want at most %s", b.target.name, took, stopLimit)
		} else {
			f.Logf("%s stopped within %s", b.target.name, took.Round(time.Millisecond))
		}
	case databaseAway:
		f.restartDatabase()
	}

	f.Logf("%s: all are ready after %s", b, time.Since(began).Round(time.Millisecond))
}

const (
	// stopLimit is the maximum time in which a replica without a shutdown delay stops, as docs/operator/running.md promises.
	stopLimit = 25 * time.Second
	// takeOver limits the time until other replicas have claimed the operations of a frozen replica, and until it notices that.
	takeOver = 30 * time.Second
	// freezes limits the attempts to freeze a replica while it holds operations.
	freezes = 5
	// refused is the log text of a replica whose write came after its lease.
	refused = "lease lost, another replica continues the operation"
)

// freeze stops a working replica until others have taken over its operations. When it continues, the fence has to reject its writes.
func (f *fleet) freeze(m *member) {
	f.Helper()

	rows, others := f.brokerDB, len(f.brokers.members)
	hold := func() (lift func()) { return f.toProvisioner.Hold(harness.Match{}) }

	if strings.HasPrefix(m.name, "provisioner") {
		rows, hold, others = f.provisionerDB, f.toGarden.hold, len(f.provisioners.members)
	}

	for range freezes {
		before, refusedBefore := rows.takenOver(), strings.Count(m.running.said(), refused)

		// While the upstream is silent, every replica soon holds operations.
		release := hold()
		atWork := harness.Within(3*time.Second, func() bool { return rows.carriers() >= others })
		m.running.signal(syscall.SIGSTOP)
		release()

		limit := 3 * lease
		if atWork { // or it may have held nothing
			limit = takeOver
		}

		stopped := time.Now()
		caught := harness.Within(limit, func() bool { return time.Since(stopped) > lease && rows.lapsed() == 0 && rows.takenOver() > before })
		m.running.signal(syscall.SIGCONT)

		if caught && harness.Within(takeOver, func() bool { return strings.Count(m.running.said(), refused) > refusedBefore }) {
			f.Logf("%s was frozen for %s; its late writes were rejected", m.name, time.Since(stopped).Round(time.Millisecond))
			f.allReady()

			return
		}
	}

	f.Errorf("%s was frozen %d times, but no late write was rejected", m.name, freezes)
}

// restartDatabase stops PostgreSQL until every replica reports that it is not ready.
func (f *fleet) restartDatabase() {
	f.Helper()

	if err := f.postgres.Stop(); err != nil {
		f.Fatal(err)
	}

	f.until("every replica to report that it is not ready", func() bool { return f.brokers.count()+f.provisioners.count() == 0 })

	if err := f.postgres.Start(); err != nil {
		f.Fatal(err)
	}

	f.allReady()
}
