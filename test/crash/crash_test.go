package crash

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/process/crashtest"
	provisionerservice "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/test/harness"
)

// Flags for the tests that inject two faults. "go test ./test/crash -run Pairs -pairs 500 -seed 7" searches longer.
var (
	pairs = flag.Int("pairs", 10, "number of pairs of faults for each scenario")
	seed  = flag.Uint64("seed", 1, "seed that draws the pairs of faults")
)

// postgresSample is the share of faults that also run on PostgreSQL: one in 23.
const postgresSample = 23

func TestEveryRegisteredProcessHasAScenario(t *testing.T) {
	garden := newGarden(t)

	crashtest.Covers(t, service.Processes(service.DefaultConfig(), service.Parts{}), brokerScenarios(t, garden, storagetest.SQLite)...)
	crashtest.Covers(t, provisionerservice.Processes(provisionerservice.DefaultConfig(), provisionerservice.Parts{}), provisionerScenarios(t, garden, storagetest.SQLite)...)
}

const (
	// fullScenarios is the share of scenarios that run with every fault if SOAK_DURATION is not set: one in fifteen.
	fullScenarios = 15
	// sampledFaults is the share of faults that run in the other scenarios: one in twenty.
	sampledFaults = 20
)

// matrix runs every scenario with one fault per run. With SOAK_DURATION, which `make soak` sets, every scenario runs with every
// fault. Otherwise a random fifteenth of the scenarios runs with every fault, and the other scenarios run with a sample of the
// faults. TEST_SEED sets the seed of this choice.
func matrix[D any](t *testing.T, scenarios []crashtest.Scenario[D]) {
	t.Helper()

	full := len(scenarios)

	if harness.SoakDuration(t) == 0 {
		seed := harness.Seed(t)
		rand.New(rand.NewPCG(seed, seed)).Shuffle(len(scenarios), func(i, j int) { scenarios[i], scenarios[j] = scenarios[j], scenarios[i] })
		full = (len(scenarios) + fullScenarios - 1) / fullScenarios
	}

	crashtest.Matrix(t, scenarios[:full]...)
	crashtest.Sample(t, sampledFaults, scenarios[full:]...)
}

func TestBroker(t *testing.T) {
	t.Parallel()

	garden := newGarden(t)
	matrix(t, brokerScenarios(t, garden, storagetest.SQLite))
}

func TestProvisioner(t *testing.T) {
	t.Parallel()

	garden := newGarden(t)
	matrix(t, provisionerScenarios(t, garden, storagetest.SQLite))
}

func TestBrokerPairs(t *testing.T) {
	t.Parallel()

	garden := newGarden(t)
	crashtest.Pairs(t, *seed, *pairs, brokerScenarios(t, garden, storagetest.SQLite)...)
}

func TestProvisionerPairs(t *testing.T) {
	t.Parallel()

	garden := newGarden(t)
	crashtest.Pairs(t, *seed, *pairs, provisionerScenarios(t, garden, storagetest.SQLite)...)
}

func TestBrokerOnPostgreSQL(t *testing.T) {
	t.Parallel()

	postgres(t) // starts the server before the scenarios, which run in fake time

	crashtest.Sample(t, postgresSample, brokerScenarios(t, newGarden(t), postgres)...)
}

func TestProvisionerOnPostgreSQL(t *testing.T) {
	t.Parallel()

	postgres(t)

	crashtest.Sample(t, postgresSample, provisionerScenarios(t, newGarden(t), postgres)...)
}
