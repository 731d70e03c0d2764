package harness

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
)

// Credentials of the user that every broker of the harness accepts. The user has the roles osb and admin.
const (
	User     = "tester"
	Password = "secret"
)

// anyPort lets the operating system choose a free port on the loopback interface.
const anyPort = "127.0.0.1:0"

// Options configures an [Environment]. The zero value is valid.
type Options struct {
	// Database creates the databases of both services. Nil means SQLite.
	Database Database
	// ClusterCreation is how long the garden takes to create or change a cluster. A deletion takes half as long.
	ClusterCreation time.Duration
	// Configure changes the settings of the services before they start. It may be nil. The Provisioner's URL in the broker's
	// settings is set only afterwards.
	Configure func(*broker.Config, *provisioner.Config)
	// Log is the broker's log, and ProvisionerLog the Provisioner's. Nil discards the log.
	Log, ProvisionerLog logrus.FieldLogger
}

// Environment is a broker, a Provisioner and a fake garden, with a fault proxy between the services. All run in the process of
// the test, on free ports, until the test ends. The broker can be stopped and started again on the same data.
type Environment struct {
	testing.TB

	// Garden is the fake garden, for tests that read or change its objects.
	Garden *fakegarden.Memory
	// Proxy forwards the broker's calls to the Provisioner.
	Proxy *FaultProxy
	// Settings are the settings of the broker. Changes apply at the next start of the broker.
	Settings broker.Config
	// Broker is the most recently started broker, or the zero value after [Prepare].
	Broker Broker

	log logrus.FieldLogger
}

// Start runs an environment until the test ends.
func Start(tb testing.TB, options Options) *Environment {
	tb.Helper()

	e := Prepare(tb, options)
	e.StartBroker()

	return e
}

// Prepare is like [Start], but does not start the broker, so that a test can inject faults before the broker's first call.
func Prepare(tb testing.TB, options Options) *Environment {
	tb.Helper()

	database := options.Database
	if database == nil {
		database = SQLite
	}

	e := &Environment{
		TB: tb, Garden: StartGarden(tb, options.ClusterCreation), Settings: BrokerSettings(database(tb, "broker")), log: options.Log,
	}
	settings := ProvisionerSettings(database(tb, "provisioner"))

	if options.Configure != nil {
		options.Configure(&e.Settings, &settings)
	}

	if e.log == nil {
		e.log = logging.Discard()
	}

	provisionerLog := options.ProvisionerLog
	if provisionerLog == nil {
		provisionerLog = logging.Discard()
	}

	service, _ := StartProvisioner(tb, e.Garden.Client(), settings, provisionerLog)
	e.Proxy = NewFaultProxy(tb, func() string { return strings.TrimSuffix(service, graphQLPath) })
	e.Settings.Provisioner.URL = e.Proxy.URL + graphQLPath

	return e
}

// StartBroker starts the broker of the environment.
func (e *Environment) StartBroker() {
	e.Helper()

	e.Broker = StartBroker(e.TB, e.Settings, e.log)
}

// RestartBroker stops the broker and starts it again on the same database, with a new port.
func (e *Environment) RestartBroker() {
	e.Helper()
	e.Broker.Stop()
	e.StartBroker()
}

// Shoots returns the Shoots of the garden that match the options.
func (e *Environment) Shoots(options ...client.ListOption) []gardencorev1beta1.Shoot {
	e.Helper()

	return Shoots(e.TB, e.Garden, options...)
}

// Garden is a project of a garden. *fakegarden.Memory implements it, and so do projects of local gardens.
type Garden interface {
	// Client returns a client for the garden.
	Client() client.WithWatch
	// Project returns the name of the project.
	Project() string
	// Namespace returns the namespace of the project's Shoots.
	Namespace() string
}

// GardenNamespace returns the namespace of the default project.
func GardenNamespace() string { return gardenlet.Namespace(fakegarden.DefaultProject) }

// Shoots returns the Shoots of a project that match the options.
func Shoots(tb testing.TB, garden Garden, options ...client.ListOption) []gardencorev1beta1.Shoot {
	tb.Helper()

	found := &gardencorev1beta1.ShootList{}
	if err := garden.Client().List(context.WithoutCancel(tb.Context()), found, append(options, client.InNamespace(garden.Namespace()))...); err != nil {
		tb.Fatal(err)
	}

	return found.Items
}

// InjectClusterFaults replaces the faults that a garden injects into the clusters of the project. The keys are Shoot names; the
// fault under gardenlet.FaultDefault applies to all other Shoots. Nil removes all faults.
func InjectClusterFaults(tb testing.TB, garden Garden, faults map[string]string) {
	tb.Helper()

	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: garden.Namespace(), Name: gardenlet.FaultsConfigMap}}

	err := client.IgnoreNotFound(garden.Client().Delete(context.Background(), config.DeepCopy()))
	if err == nil && len(faults) > 0 {
		config.Data = faults
		err = garden.Client().Create(context.Background(), config)
	}

	if err != nil {
		tb.Fatal(err)
	}
}

// StuckClusters returns faults that keep all clusters from becoming ready, so that their operations stay in progress.
func StuckClusters() map[string]string {
	return map[string]string{gardenlet.FaultDefault: string(gardenlet.FaultStuck)}
}

// StartGarden runs a fake garden until the test ends. creation is the time that the garden takes to create or change a cluster.
func StartGarden(tb testing.TB, creation time.Duration) *fakegarden.Memory {
	tb.Helper()

	garden, err := fakegarden.Open(tb.Context(), fakegarden.Options{
		Dir: filepath.Join(tb.TempDir(), "garden"), ClusterCreation: creation, Log: logging.Discard(),
	})
	if err != nil {
		tb.Fatal(err)
	}

	Run(tb, garden.Run)

	return garden
}

// graphQLPath is the path of the Provisioner's API.
const graphQLPath = "/graphql"

// ProvisionerSettings returns the settings of a Provisioner on free ports, for the project of the fake garden.
func ProvisionerSettings(database replica.Database) provisioner.Config {
	settings := provisioner.DefaultConfig()
	settings.Address, settings.StatusAddress, settings.ShutdownDelay = anyPort, anyPort, 0
	settings.Database = database
	settings.Gardener.Project = fakegarden.DefaultProject

	return settings
}

// StartProvisioner runs a Provisioner on a garden until stop is called or the test ends. It returns the URL of the GraphQL API,
// which accepts requests without credentials unless the settings require them. stop waits until the Provisioner has stopped.
func StartProvisioner(
	tb testing.TB, garden client.WithWatch, settings provisioner.Config, log logrus.FieldLogger,
) (url string, stop func()) {
	tb.Helper()

	service, err := provisioner.New(tb.Context(), settings, garden, log)
	if err != nil {
		tb.Fatal(err)
	}

	return "http://" + service.Address() + graphQLPath, Run(tb, service.Run)
}

// BrokerSettings returns the settings of a broker on free ports that accepts [User]. The caller sets the Provisioner's URL.
func BrokerSettings(database replica.Database) broker.Config {
	settings := broker.DefaultConfig()
	settings.Address, settings.StatusAddress, settings.ShutdownDelay = anyPort, anyPort, 0
	settings.Database = database
	settings.AuthBasicUsers = User + ":" + Password + ":osb+admin"
	settings.OwnClusterNetworks = []string{"127.0.0.0/8"} // the clusters of the fake garden
	settings.UnbindWait = 0                               // asynchronous unbinds return 202, however fast the machine is

	return settings
}

// Broker is a running broker. Its Endpoint uses the credentials of [User].
type Broker struct {
	Endpoint

	// Metrics gathers the metrics that the broker exposes at its status address.
	Metrics prometheus.Gatherer
	// Stop stops the broker and waits until it has stopped. Repeated calls have no effect.
	Stop func()
}

// StartBroker runs a broker until it is stopped or the test ends.
func StartBroker(tb testing.TB, settings broker.Config, log logrus.FieldLogger) Broker {
	tb.Helper()

	service, err := broker.New(context.WithoutCancel(tb.Context()), settings, log)
	if err != nil {
		tb.Fatal(err)
	}

	return Broker{
		Endpoint: Endpoint{URL: "http://" + service.Address(), User: User, Password: Password},
		Metrics:  service.Metrics(), Stop: Run(tb, service.Run),
	}
}
