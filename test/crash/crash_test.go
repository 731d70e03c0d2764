package crash

import (
	"flag"
	"testing"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/process/crashtest"
	provisionerservice "github.com/environment-broker/environment-broker/provisioner/service"
)

// With other values the same tests search longer: go test ./test/crash -run Pairs -pairs 500 -seed 7.
var (
	pairs = flag.Int("pairs", 10, "how many pairs of faults each scene is played with")
	seed  = flag.Uint64("seed", 1, "which pairs these are")
)

// nth is which part of the matrix is played on PostgreSQL too.
const nth = 23

func TestEveryRegisteredProcessHasAScenario(t *testing.T) {
	ground := newGround(t)

	crashtest.Covers(t, service.Processes(service.DefaultConfig(), service.Parts{}), brokerScenes(t, ground, ground.scratch)...)
	crashtest.Covers(t, provisionerservice.Processes(provisionerservice.DefaultConfig(), provisionerservice.Parts{}), provisionerScenes(ground.garden, ground.scratch)...)
}

func TestBroker(t *testing.T) {
	t.Parallel()

	ground := newGround(t)
	crashtest.Matrix(t, brokerScenes(t, ground, ground.scratch)...)
}

func TestProvisioner(t *testing.T) {
	t.Parallel()

	ground := newGround(t)
	crashtest.Matrix(t, provisionerScenes(ground.garden, ground.scratch)...)
}

func TestBrokerPairs(t *testing.T) {
	t.Parallel()

	ground := newGround(t)
	crashtest.Pairs(t, *seed, *pairs, brokerScenes(t, ground, ground.scratch)...)
}

func TestProvisionerPairs(t *testing.T) {
	t.Parallel()

	ground := newGround(t)
	crashtest.Pairs(t, *seed, *pairs, provisionerScenes(ground.garden, ground.scratch)...)
}

func TestBrokerOnPostgreSQL(t *testing.T) {
	t.Parallel()

	postgres(t) // the server is started on real time

	crashtest.Sample(t, nth, brokerScenes(t, newGround(t), postgres)...)
}

func TestProvisionerOnPostgreSQL(t *testing.T) {
	t.Parallel()

	postgres(t)

	crashtest.Sample(t, nth, provisionerScenes(newGround(t).garden, postgres)...)
}
