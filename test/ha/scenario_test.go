package ha

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	// resumeLimit is the maximum time from the start of a new primary until the services resume work.
	resumeLimit = 10 * time.Second
	// frozenFor is the time for which a server stays frozen.
	frozenFor = 30 * time.Second
)

// scenario is a fault of the primary that makes another server the primary.
type scenario struct {
	name, reason string
	// inject makes the primary fail. heal brings it back; it is called after the new primary has taken over.
	inject, heal func(primary *node)
}

func scenarios(c *cluster) []scenario {
	var frozenAt time.Time

	nothing := func(*node) {}

	return []scenario{
		{"killed", "PostgreSQL dies, and Patroni on the same machine notices it", (*node).killPostgres, nothing},
		{"switched over", "an operator moves the primary, for example to patch a machine", c.switchOver, nothing},
		{"lost power", "nobody tells the others that the primary is gone", (*node).kill, (*node).startPatroni},
		{"cut off", "packets from and to the primary are lost, while it runs", (*node).isolate, (*node).join},
		{
			"frozen", "the primary comes back and does not know that it was replaced",
			func(n *node) {
				frozenAt = time.Now()

				n.freeze()
			},
			func(n *node) {
				<-time.After(time.Until(frozenAt.Add(frozenFor)))
				n.thaw()
			},
		},
	}
}

// TestSynchronousReplication replaces the primary under load. No request that a broker accepted with 202 may be lost, and every
// instance must have exactly one Shoot. Without SOAK_DURATION, the test runs only the first scenario. With it, the test repeats
// all scenarios for that long, and fails if the services take longer than resumeLimit to resume work.
func TestSynchronousReplication(t *testing.T) {
	duration, began := harness.SoakDuration(t), time.Now()
	c := startCluster(t, true)
	all := scenarios(c)

	if duration == 0 {
		all = all[:1]
	}

	s := startServices(c)

	for {
		for _, each := range all {
			if !t.Run(each.name, func(t *testing.T) {
				parent := s.TB
				s.TB, c.TB = t, t

				defer func() { s.TB, c.TB = parent, parent }()

				s.run(c, each, duration > 0)
			}) {
				return
			}
		}

		if time.Since(began) > duration {
			return
		}
	}
}

// run runs one scenario under load. strict makes exceeding resumeLimit an error.
func (s *services) run(c *cluster, each scenario, strict bool) {
	s.Helper()

	former := c.waitForPrimary(server{})
	load := s.startCustomers()
	load.waitForWork(time.Now())

	failed, began := former.server(), time.Now()

	each.inject(former)

	primary := c.waitForPrimary(failed)
	promoted := time.Now()
	resumed := load.waitForWork(promoted).Sub(promoted)
	s.Logf("%s (%s): %s is primary after %s, work resumed after another %s", each.name, each.reason, primary.Name,
		promoted.Sub(began).Round(time.Millisecond), resumed.Round(time.Millisecond))

	if strict && resumed > resumeLimit {
		s.Errorf("%s: work resumed %s after the new primary, want at most %s", each.name, resumed, resumeLimit)
	}

	each.heal(former)
	c.waitForMembers()
	load.waitForWork(time.Now())
	load.finish()
	s.waitForReplicas() // after pg_rewind, Patroni reports that a standby is running even if it has not caught up
}

// switchOver asks Patroni to make another node the primary.
func (c *cluster) switchOver(primary *node) {
	c.Helper()

	order, err := json.Marshal(map[string]string{"leader": primary.Name})
	if err != nil {
		c.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+freeport.Address(primary.rest)+"/switchover", bytes.NewReader(order))
	if err != nil {
		c.Fatal(err)
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.Fatal(err)
	}
	defer response.Body.Close()

	if response.StatusCode != http.StatusOK {
		c.Fatalf("Patroni rejects the switchover with status %d", response.StatusCode)
	}
}
