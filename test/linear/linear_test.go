package linear

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	// shortestRound is the minimum duration of a round. In a round, the clients send calls, and then their history is checked.
	shortestRound = 15 * time.Second
	// roundLimit is the maximum duration of a round. It bounds the history, so that its check stays short. A longer run has
	// several rounds, each with new instances.
	roundLimit = 20 * time.Second
	// exerciseLimit limits how long a run may add rounds until each kind of response has occurred often enough. Only a very slow
	// machine needs this time.
	exerciseLimit = harness.Patience
	// clusterCreation is the time that the garden takes to create or change a cluster. A deletion takes half as long.
	clusterCreation = 100 * time.Millisecond
)

// deployments returns the tested deployments by name. Each consists of a database and a number of brokers that share it.
func deployments() map[string]struct {
	database harness.Database
	brokers  int
} {
	return map[string]struct {
		database harness.Database
		brokers  int
	}{
		"sqlite":                {harness.SQLite, 1},
		"postgres":              {harness.Postgres, 1},
		"postgres, two brokers": {harness.Postgres, 2},
	}
}

// TestLinearizable checks the histories of 200 clients of 20 instances with 60 bindings. Each history must be linearizable, and
// all histories of a deployment together must contain every kind of response often enough.
//
// TEST_SEED reproduces the calls that the clients draw, but not their interleaving. SOAK_DURATION sets the total time for all
// deployments.
func TestLinearizable(t *testing.T) {
	seed := harness.Seed(t)
	all := deployments()
	duration := harness.SoakDuration(t) / time.Duration(len(all))

	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			form := all[name]
			log := errorLog(t)
			e := harness.Start(t, harness.Options{Database: form.database, ClusterCreation: clusterCreation, Log: log})
			endpoints := []harness.Endpoint{e.Broker.Endpoint}

			for len(endpoints) < form.brokers {
				endpoints = append(endpoints, harness.StartBroker(t, e.Settings, log).Endpoint)
			}

			counts := map[string]int{}

			began := time.Now()
			unfinished := func() bool {
				passed := time.Since(began)

				return passed < duration || len(unseen(counts)) > 0 && passed < exerciseLimit
			}

			for round := seed; !t.Failed() && unfinished(); round++ {
				l := &load{TB: t, history: newHistory(), brokers: endpoints, id: fmt.Sprintf("i%04x", round&0xffff), known: map[string][]string{}}
				l.run(round, min(roundLimit, max(shortestRound, duration-time.Since(began))))

				ended := time.Now()
				check(t, fmt.Sprintf("%s-%d", t.Name(), round), l.calls)
				t.Logf("TEST_SEED=%d: %d calls, checked in %s", round, len(l.calls), time.Since(ended).Round(time.Millisecond))

				for kind, count := range l.counts {
					counts[kind] += count
				}
			}

			wantExercised(t, counts)
		})
	}
}

// errorLog returns a logger that writes the brokers' errors to the test's output, so that a failed run shows the causes.
func errorLog(t *testing.T) logrus.FieldLogger {
	t.Helper()

	log, err := logging.New("broker", logging.Config{Level: "error", Format: logging.FormatJSON}, t.Output())
	if err != nil {
		t.Fatal(err)
	}

	return log
}

// wantExercised fails the test unless each kind of response has occurred often enough.
func wantExercised(t *testing.T, counts map[string]int) {
	t.Helper()

	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%6d %s", counts[kind], kind)
	}

	for _, kind := range unseen(counts) {
		t.Errorf("%d × %q in this run, want at least %d", counts[kind], kind, leastCount)
	}
}

// unseen returns the kinds of responses that have not yet occurred often enough in a run.
func unseen(counts map[string]int) []string {
	return slices.DeleteFunc(exercised(), func(kind string) bool { return counts[kind] >= leastCount })
}

// leastCount is the required number of responses of each kind in a run.
const leastCount = 2

// exercised returns the kinds of responses that must occur in every run.
func exercised() []string {
	return []string{
		"order: 202", "order: 200", "order: 409", "update: 202", "update: 422 ConcurrencyError", "delete: 202", "fetch: 200", "fetch: 404",
		"poll: 200 in progress", "poll: 200 succeeded", "bind: 202", "bind synchronously: 201", "unbind: 202", "unbind: 410",
		"fetch binding: 200", "fetch binding: 404", "poll binding: 200 in progress", "poll binding: 200 succeeded", "poll binding: 404",
	}
}
