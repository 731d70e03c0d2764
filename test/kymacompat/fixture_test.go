package kymacompat

import (
	"testing"
	"time"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/test/harness"
	"github.com/environment-broker/environment-broker/test/kymacompat/provisioner"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// env is a client for our broker, and the simulated Kyma Provisioner that the broker calls.
type env struct {
	harness.Client

	provisioner *provisioner.Provisioner
}

// start runs our broker with a simulated Kyma Provisioner. Each operation of the Provisioner takes the given duration.
func start(t *testing.T, database harness.Database, duration time.Duration, configure ...func(*broker.Config)) env {
	t.Helper()

	kyma, closed, err := provisioner.Start(duration)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(closed)

	settings := harness.BrokerSettings(database(t, "broker"))
	settings.Provisioner.URL = kyma.URL

	for _, change := range configure {
		change(&settings)
	}

	service := harness.StartBroker(t, settings, logging.Discard())

	return env{Client: harness.Client{TB: t, Endpoint: service.Endpoint}, provisioner: kyma}
}

// startOurProvisioner runs our Provisioner on a garden that creates a cluster in the given time. It returns the URL of the API.
func startOurProvisioner(t *testing.T, database harness.Database, creation time.Duration) string {
	t.Helper()

	url, _ := harness.StartProvisioner(t, harness.StartGarden(t, creation).Client(),
		harness.ProvisionerSettings(database(t, "provisioner")), logging.Discard())

	return url
}
