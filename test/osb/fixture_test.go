package osb

import (
	"maps"
	"net/http"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"sigs.k8s.io/controller-runtime/pkg/client"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/program"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	// clusterCreation is the time that the garden takes to create or change a cluster. A deletion takes half as long.
	clusterCreation = 100 * time.Millisecond
	// responseLimit is the maximum time that a response may take on a busy machine. Platforms give up after a minute.
	responseLimit = 20 * time.Second
	// identity is the default request identity of the tests.
	identity = "4f8d1c9e-0000-4000-8000-0123456789ab"
)

// Request headers of the Open Service Broker API.
const (
	identityHeader   = "X-Broker-API-Request-Identity"
	originatorHeader = "X-Broker-API-Originating-Identity"
)

// Names of the GraphQL operations that the broker sends to the Provisioner.
const (
	callOrder      = "ProvisionRuntime"
	callStatus     = "OperationStatus"
	callRemoval    = "DeprovisionRuntime"
	callUpgrade    = "UpgradeShoot"
	callKubeconfig = "Kubeconfig"
)

// env is an environment with a broker that logs to a hook, so that tests can read the log.
type env struct {
	*harness.Environment

	log *logtest.Hook
}

// setting is an environment variable of the broker and its value, such as APP_OSB_STRICT=true.
type setting string

// start runs an environment on SQLite until the test ends.
func start(t testing.TB, settings ...setting) *env {
	t.Helper()

	return startOn(t, harness.SQLite, settings...)
}

// startOn runs an environment on databases of the given kind until the test ends.
func startOn(t testing.TB, database harness.Database, settings ...setting) *env {
	t.Helper()

	logger, hook := logtest.NewNullLogger()
	logger.SetLevel(logrus.DebugLevel)

	return &env{log: hook, Environment: harness.Start(t, harness.Options{
		Database: database, ClusterCreation: clusterCreation, Log: logger,
		Configure: func(broker *broker.Config, _ *provisioner.Config) { configure(t, broker, settings...) },
	})}
}

// configure applies the settings to a broker's configuration. It also adds a user named watcher with the viewer role, and a dashboard
// URL.
func configure(t testing.TB, target *broker.Config, settings ...setting) {
	t.Helper()

	variables := make([]string, len(settings))
	for i, setting := range settings {
		variables[i] = string(setting)
	}

	read, err := program.ReadSettings(program.Prefix, *target, variables)
	if err != nil {
		t.Fatal(err)
	}

	*target = read
	target.AuthBasicUsers += ",watcher:" + harness.Password + ":viewer"
	target.Access.LoginFailures = 0 // the rows send many wrong passwords
	target.DashboardURL = "https://dashboard.example.com/?kubeconfigID={instance_id}"
}

// shoots returns the clusters of the platform's tenant.
func (p platform) shoots() []gardencorev1beta1.Shoot {
	p.Helper()

	return p.Shoots(client.MatchingLabels{"account": p.tenant})
}

// send sends a call. It adds the default request identity unless the call sets the header.
func send(endpoint harness.Endpoint, call harness.Call) (harness.Reply, error) {
	headers := header(identityHeader, identity)
	maps.Copy(headers, call.Header)
	call.Header = headers

	return endpoint.Do(call)
}

// header returns a header with one value for each name. pairs contains alternating names and values.
func header(pairs ...string) http.Header {
	set := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		set[http.CanonicalHeaderKey(pairs[i])] = []string{pairs[i+1]}
	}

	return set
}

// without returns a header that removes the named default headers from a call.
func without(names ...string) http.Header {
	set := http.Header{}
	for _, name := range names {
		set[http.CanonicalHeaderKey(name)] = nil
	}

	return set
}
