package ha

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	replicaCount    = 2
	clusterCreation = time.Second
)

// services are two brokers and two Provisioners.
type services struct {
	testing.TB

	garden *fakegarden.Memory
	// provisioner is the URL at which the brokers reach the Provisioners.
	provisioner             string
	brokers                 []harness.Broker
	brokerDB, provisionerDB *storage.DB

	// rounds is the number of customer groups so far. live contains the IDs of the instances that these customers have.
	rounds int
	live   []string
}

// startServices starts the services on a cluster. The brokers connect with a list of all PostgreSQL servers, and the Provisioners
// connect through HAProxy.
func startServices(c *cluster) *services {
	c.Helper()

	hosts, ports := make([]string, 0, nodeCount), make([]string, 0, nodeCount)
	for _, n := range c.nodes {
		hosts, ports = append(hosts, "127.0.0.1"), append(ports, strconv.Itoa(n.ToPostgres.Port))
	}

	list, port := strings.Join(hosts, ","), strings.Join(ports, ",")
	admin := c.open(databaseSettings("postgres", list, port))

	for _, name := range []string{"broker", "provisioner"} {
		if _, err := storage.Exec(c.Context(), admin.Writer(), `CREATE DATABASE `+name); err != nil {
			c.Fatal(err)
		}
	}

	broker := databaseSettings("broker", list, port)
	s := startReplicas(c.TB, broker, databaseSettings("provisioner", "127.0.0.1", strconv.Itoa(c.haproxy)))
	s.brokerDB, s.provisionerDB = c.open(broker), c.open(databaseSettings("provisioner", list, port))

	return s
}

// startReplicas starts the services on their databases. The caller sets the connections for the test's own queries.
func startReplicas(t testing.TB, broker, provisioner replica.Database) *services {
	t.Helper()

	s, log := &services{TB: t, garden: harness.StartGarden(t, clusterCreation)}, newLog(t)
	urls := make([]string, 0, replicaCount)

	for range replicaCount {
		url, _ := harness.StartProvisioner(t, s.garden.Client(), harness.ProvisionerSettings(provisioner), log)
		urls = append(urls, strings.TrimSuffix(url, "/graphql"))
	}

	var turn atomic.Uint32

	balancer := harness.NewFaultProxy(t, func() string { return urls[int(turn.Add(1))%len(urls)] })

	s.provisioner = balancer.URL + "/graphql"

	for range replicaCount {
		settings := harness.BrokerSettings(broker)
		settings.Provisioner.URL = s.provisioner
		s.brokers = append(s.brokers, harness.StartBroker(t, settings, log))
	}

	return s
}

// newLog returns a log of warnings and errors. Its last lines are logged if the test fails.
func newLog(t testing.TB) logrus.FieldLogger {
	t.Helper()

	file, err := os.Create(filepath.Join(t.TempDir(), "services.log"))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		defer file.Close()

		if content, err := os.ReadFile(file.Name()); err == nil && t.Failed() {
			t.Logf("log of the services:\n%s", tail(string(content)))
		}
	})

	log := logrus.New()
	log.SetOutput(file)
	log.SetLevel(logrus.WarnLevel)

	return log
}

// keys encrypt the secrets of all replicas.
var keys = secret.NewKey("test")

func databaseSettings(name, host, port string) replica.Database {
	settings := replica.DefaultConfig(name, storage.DriverPostgres).Database
	settings.User, settings.Password, settings.SecretKeys = "postgres", password, keys
	settings.Host, settings.Port = host, port

	return settings
}

// open opens a database and closes it after the test.
func (c *cluster) open(settings replica.Database) *storage.DB {
	c.Helper()

	config, err := settings.Storage()
	if err != nil {
		c.Fatal(err)
	}

	db, err := storage.Open(c.Context(), config)
	if err != nil {
		c.Fatal(err)
	}

	tb := c.TB // run replaces it
	tb.Cleanup(func() {
		// Unused connections to a former primary are broken.
		if err := db.Close(); err != nil {
			tb.Log(err)
		}
	})

	return db
}

// checkClusters compares the instances that the customers have with the rows of both services and with the Shoots.
func (s *services) checkClusters() {
	s.Helper()
	s.wantEqual("instances", s.live, s.column(s.brokerDB, `SELECT id FROM instances`))

	runtimes := s.column(s.brokerDB, `SELECT runtime_id || ' ' || shoot_name FROM instances`)
	s.wantEqual("runtimes", runtimes, s.column(s.provisionerDB,
		`SELECT id || ' ' || shoot_name FROM runtimes WHERE deleted_at IS NULL`))
	s.wantEqual("Shoots", runtimes, s.shoots())
}

// shoots returns the runtime ID and the name of each Shoot.
func (s *services) shoots() []string {
	s.Helper()

	found := harness.Shoots(s, s.garden)
	names := make([]string, 0, len(found))

	for _, shoot := range found {
		names = append(names, shoot.Annotations["kcp.provisioner.kyma-project.io/runtime-id"]+" "+shoot.Name)
	}

	return names
}

// column returns the values in the only column of a query's result.
func (s *services) column(db *storage.DB, query string) []string {
	s.Helper()

	values, err := storage.Select[string](context.WithoutCancel(s.Context()), db.Reader(), query)
	if err != nil {
		s.Fatal(err)
	}

	return values
}

// wantEqual compares two lists without regard to order.
func (s *services) wantEqual(what string, want, got []string) {
	s.Helper()

	want, got = slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("%s: -want +got:\n%s", what, diff)
	}
}
