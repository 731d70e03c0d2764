//go:build garden

package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The ways in which a fleet is hit.
const (
	killed       = "SIGKILL"
	frozen       = "SIGSTOP beyond the lease, then SIGCONT"
	terminated   = "SIGTERM"
	databaseAway = "restart of PostgreSQL"
)

// blow hits the fleet once so much is done.
type blow struct {
	how    string
	victim *member // nil for the database
	after  int
}

func (b blow) String() string {
	if b.victim == nil {
		return fmt.Sprintf("after %3d: %s", b.after, b.how)
	}

	return fmt.Sprintf("after %3d: %s to %s", b.after, b.how, b.victim.name)
}

// plan draws blows and their order. Every kind is in it, on each service where it has one.
func (f *fleet) plan(random *rand.Rand, toDo int) []blow {
	services := slices.DeleteFunc([]*replicas{f.brokers, f.provisioners}, func(r *replicas) bool { return len(r.members) == 0 })
	hit := func(r *replicas, how string) blow {
		return blow{how: how, victim: r.members[random.IntN(len(r.members))]}
	}

	blows := []blow{{how: databaseAway}, hit(services[0], killed)}
	for _, service := range services {
		blows = append(blows, hit(service, killed), hit(service, frozen), hit(service, terminated))
	}

	random.Shuffle(len(blows), func(i, j int) { blows[i], blows[j] = blows[j], blows[i] })

	// The last ones come while there is still enough to do.
	const lastAt = 0.7

	for i := range blows {
		blows[i].after = int(lastAt * float64(toDo) * float64(i+1) / float64(len(blows)))
	}

	return blows
}

// strike hits the fleet and waits until all of it is ready again.
func (f *fleet) strike(b blow) {
	f.Helper()

	began := time.Now()

	switch b.how {
	case killed:
		f.kill(b.victim)
	case frozen:
		f.freeze(b.victim)
	case terminated:
		if took := f.terminate(b.victim); took > stopLimit {
			f.Errorf("%s took %s to stop, want at most %s", b.victim.name, took, stopLimit)
		} else {
			f.Logf("%s stopped within %s", b.victim.name, took.Round(time.Millisecond))
		}
	case databaseAway:
		f.restartDatabase()
	}

	f.Logf("%s: all are ready after %s", b, time.Since(began).Round(time.Millisecond))
}

const (
	// stopLimit is how long a replica may take to stop that has no load balancer to wait for, as docs/operator/running.md promises.
	stopLimit = 25 * time.Second
	// takeOver is how long it may take until what a frozen replica held is taken over, and then until that replica has noticed.
	takeOver = 30 * time.Second
	// freezes is how often a replica is frozen at most, until it was caught at work.
	freezes = 5
	// refused is what a replica says whose write came too late.
	refused = "the lease was lost"
)

// freeze stops a replica at work until others have taken over from it. When it goes on, the fence has to refuse what it writes.
func (f *fleet) freeze(m *member) {
	f.Helper()

	rows, road, others := f.brokerBooks, f.toProvisioner, len(f.brokers.members)
	if strings.HasPrefix(m.name, "provisioner") {
		rows, road, others = f.provisionerBooks, f.toGarden, len(f.provisioners.members)
	}

	for range freezes {
		before, refusedBefore := rows.takenOver(), strings.Count(m.running.said(), refused)

		// While no answer comes from outside, every replica soon holds operations.
		release := road.hold()
		atWork := within(3*time.Second, func() bool { return rows.carriers() >= others })
		m.running.signal(syscall.SIGSTOP)
		release()

		limit := 3 * lease
		if atWork { // or it may have held nothing
			limit = takeOver
		}

		stopped := time.Now()
		caught := within(limit, func() bool { return time.Since(stopped) > lease && rows.lapsed() == 0 && rows.takenOver() > before })
		m.running.signal(syscall.SIGCONT)

		if caught && within(takeOver, func() bool { return strings.Count(m.running.said(), refused) > refusedBefore }) {
			f.Logf("%s was frozen for %s; its late writes were refused", m.name, time.Since(stopped).Round(time.Millisecond))
			f.allReady()

			return
		}
	}

	f.Errorf("%s was frozen %d times and its late writes never refused", m.name, freezes)
}

// restartDatabase takes PostgreSQL away until every replica has noticed.
func (f *fleet) restartDatabase() {
	f.Helper()

	if err := f.postgres.Stop(); err != nil {
		f.Fatal(err)
	}

	f.until("every replica to say that it is not ready", func() bool { return f.brokers.count()+f.provisioners.count() == 0 })

	if err := f.postgres.Start(); err != nil {
		f.Fatal(err)
	}

	f.allReady()
}
