package crash

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/process/crashtest"
	provisionerservice "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// Other values search longer: go test ./test/crash -run Pairs -pairs 500 -seed 7.
var (
	pairs = flag.Int("pairs", 10, "number of pairs of faults for each scenario")
	seed  = flag.Uint64("seed", 1, "seed that draws the pairs of faults")
)

// nth selects the faults that also run on PostgreSQL: every 23rd.
const nth = 23

func TestEveryRegisteredProcessHasAScenario(t *testing.T) {
	shared := newShared(t)

	crashtest.Covers(t, service.Processes(service.DefaultConfig(), service.Parts{}), brokerScenarios(t, shared, shared.database)...)
	crashtest.Covers(t, provisionerservice.Processes(provisionerservice.DefaultConfig(), provisionerservice.Parts{}), provisionerScenarios(shared.garden, shared.database)...)
}

const (
	// wholeScenarios is the share of scenarios with every fault in a run without SOAK_DURATION: one in three.
	wholeScenarios = 3
	// sampledFaults is the share of faults in the other scenarios: one in five.
	sampledFaults = 5
)

// matrix runs every scenario with single faults. The seed draws the scenarios that run with every fault; the others run with a sample.
// `make soak` sets SOAK_DURATION, with which all scenarios run with every fault.
func matrix[D any](t *testing.T, scenarios []crashtest.Scenario[D]) {
	t.Helper()

	whole := len(scenarios)

	if harness.SoakDuration(t) == 0 {
		seed := harness.Seed(t)
		rand.New(rand.NewPCG(seed, seed)).Shuffle(len(scenarios), func(i, j int) { scenarios[i], scenarios[j] = scenarios[j], scenarios[i] })
		whole = (len(scenarios) + wholeScenarios - 1) / wholeScenarios
	}

	crashtest.Matrix(t, scenarios[:whole]...)
	crashtest.Sample(t, sampledFaults, scenarios[whole:]...)
}

func TestBroker(t *testing.T) {
	t.Parallel()

	shared := newShared(t)
	matrix(t, brokerScenarios(t, shared, shared.database))
}

func TestProvisioner(t *testing.T) {
	t.Parallel()

	shared := newShared(t)
	matrix(t, provisionerScenarios(shared.garden, shared.database))
}

func TestBrokerPairs(t *testing.T) {
	t.Parallel()

	shared := newShared(t)
	crashtest.Pairs(t, *seed, *pairs, brokerScenarios(t, shared, shared.database)...)
}

func TestProvisionerPairs(t *testing.T) {
	t.Parallel()

	shared := newShared(t)
	crashtest.Pairs(t, *seed, *pairs, provisionerScenarios(shared.garden, shared.database)...)
}

func TestBrokerOnPostgreSQL(t *testing.T) {
	t.Parallel()

	postgres(t) // starts the server outside of the fake time

	crashtest.Sample(t, nth, brokerScenarios(t, newShared(t), postgres)...)
}

func TestProvisionerOnPostgreSQL(t *testing.T) {
	t.Parallel()

	postgres(t)

	crashtest.Sample(t, nth, provisionerScenarios(newShared(t).garden, postgres)...)
}
