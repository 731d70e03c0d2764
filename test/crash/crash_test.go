package crash

import (
	"flag"
	"testing"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/process/crashtest"
	provisionerservice "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/test/harness"
)

// pairs is a flag for a longer search: "TEST_SEED=7 go test ./test/crash -run Pairs -pairs 500".
var pairs = flag.Int("pairs", 0, "number of pairs of faults for each scenario (default 4, with SOAK_DURATION 10)")

// selection says which faults the tests of this package inject. TEST_SEED sets the seed of the random choices.
type selection struct {
	seed uint64
	// every and postgres are the shares of faults that run on SQLite and on PostgreSQL: one in every, one in postgres, and at least one
	// for each scenario.
	every, postgres int
	// pairs is the number of pairs of faults for each scenario.
	pairs int
}

// selected returns the selection for `make soak`, which sets SOAK_DURATION, or else the smaller one for `make test`.
func selected(t *testing.T) selection {
	t.Helper()

	s := selection{seed: harness.Seed(t), every: 40, postgres: 120, pairs: 4}
	if harness.SoakDuration(t) > 0 {
		s = selection{seed: s.seed, every: 1, postgres: 23, pairs: 10}
	}

	if *pairs > 0 {
		s.pairs = *pairs
	}

	return s
}

func TestEveryRegisteredProcessHasAScenario(t *testing.T) {
	garden := newGarden(t)

	crashtest.Covers(t, service.Processes(service.DefaultConfig(), service.Parts{}), brokerScenarios(t, garden, storagetest.SQLite)...)
	crashtest.Covers(t, provisionerservice.Processes(provisionerservice.DefaultConfig(), provisionerservice.Parts{}), provisionerScenarios(t, garden, storagetest.SQLite)...)
}

func TestBroker(t *testing.T) {
	t.Parallel()

	garden, s := newGarden(t), selected(t)
	crashtest.Sample(t, s.seed, s.every, brokerScenarios(t, garden, storagetest.SQLite)...)
}

func TestProvisioner(t *testing.T) {
	t.Parallel()

	garden, s := newGarden(t), selected(t)
	crashtest.Sample(t, s.seed, s.every, provisionerScenarios(t, garden, storagetest.SQLite)...)
}

func TestBrokerPairs(t *testing.T) {
	t.Parallel()

	garden, s := newGarden(t), selected(t)
	crashtest.Pairs(t, s.seed, s.pairs, brokerScenarios(t, garden, storagetest.SQLite)...)
}

func TestProvisionerPairs(t *testing.T) {
	t.Parallel()

	garden, s := newGarden(t), selected(t)
	crashtest.Pairs(t, s.seed, s.pairs, provisionerScenarios(t, garden, storagetest.SQLite)...)
}

func TestBrokerOnPostgreSQL(t *testing.T) {
	t.Parallel()

	postgres(t) // starts the server before the scenarios, which run in fake time

	s := selected(t)
	crashtest.Sample(t, s.seed, s.postgres, brokerScenarios(t, newGarden(t), postgres)...)
}

func TestProvisionerOnPostgreSQL(t *testing.T) {
	t.Parallel()

	postgres(t)

	s := selected(t)
	crashtest.Sample(t, s.seed, s.postgres, provisionerScenarios(t, newGarden(t), postgres)...)
}
