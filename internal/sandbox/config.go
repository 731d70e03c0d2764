package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/atomicfile"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/secret"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/storage"
)

// Prefix is the prefix of the sandbox's environment variables.
const Prefix = "SANDBOX_"

// Credentials for calls to the sandbox's broker. They are public, so check allows the APIs to listen only on the loopback
// interface.
const (
	User     = "sandbox"
	Password = "sandbox"
)

// brokerDatabase is the file name of the broker's database. If the file exists in the sandbox's folder, the sandbox has run
// before.
const brokerDatabase = "broker.db"

// Config configures the sandbox. Each field is set by an environment variable whose name starts with Prefix. Port 0 selects a
// free port.
type Config struct {
	Dir                      string                    `env:"DIR"                        help:"folder that holds all data"`
	ClusterCreation          time.Duration             `env:"CLUSTER_CREATION"           help:"how long the creation of a cluster takes"`
	BrokerAddress            string                    `env:"BROKER_ADDRESS"             help:"address of the broker"`
	ProvisionerAddress       string                    `env:"PROVISIONER_ADDRESS"        help:"address of the Provisioner"`
	StatusAddress            string                    `env:"STATUS_ADDRESS"             help:"host and port on which the broker serves its health checks and metrics"`
	ProvisionerStatusAddress string                    `env:"PROVISIONER_STATUS_ADDRESS" help:"host and port on which the Provisioner serves its health checks and metrics"`
	BundlesAddress           string                    `env:"BUNDLES_ADDRESS"            help:"address of the bundle provisioner's content server"`
	BundlesStatusAddress     string                    `env:"BUNDLES_STATUS_ADDRESS"     help:"host and port on which the bundle provisioner serves its health checks and metrics"`
	PortOffset               int                       `env:"PORT_OFFSET"                help:"number to add to the port of every address, for a second sandbox or if other programs use the default ports"`
	CatalogDir               string                    `env:"CATALOG_DIR"                help:"folder with the catalog files, which are reloaded when they change; if empty, the built-in files are used"`
	Director                 bool                      `env:"DIRECTOR"                   help:"register runtimes in a simulated Director and run simulated agents"`
	Bundles                  bool                      `env:"BUNDLES"                    help:"run the bundle provisioner"`
	Integrations             bool                      `env:"INTEGRATIONS"               help:"connect the broker to simulated upstreams, such as the Event Data Platform"`
	KymaInstaller            environment.KymaInstaller `env:"KYMA_INSTALLER"             help:"system that installs Kyma on new runtimes: provisioner, reconciler or lifecycle-manager; the last two are simulated"`
	DashboardURL             string                    `env:"DASHBOARD_URL"              help:"URL of an instance's dashboard, with the placeholder {instance_id}; if empty, the URL of the instance's page in the console is used"`
	TracingEndpoint          string                    `env:"TRACING_ENDPOINT"           help:"URL of the collector that receives the spans of both services as OTLP over HTTP, such as http://127.0.0.1:4318; if empty, tracing is off"`

	Log logging.Config `envPrefix:""`
}

// DefaultConfig returns the default settings. The default ports match the examples in the documentation. The default folder is
// relative to the working directory, so each project can have its own sandbox.
func DefaultConfig() Config {
	const creation = 5 * time.Second

	return Config{
		Dir:                      ".sandbox",
		ClusterCreation:          creation,
		BrokerAddress:            "127.0.0.1:8080",
		ProvisionerAddress:       "127.0.0.1:3000",
		StatusAddress:            "127.0.0.1:8071",
		ProvisionerStatusAddress: "127.0.0.1:3001",
		BundlesAddress:           "127.0.0.1:8443",
		BundlesStatusAddress:     "127.0.0.1:8081",
		Bundles:                  true,
		Director:                 true,
		Integrations:             true,
		KymaInstaller:            environment.InstallerProvisioner,
		Log:                      logging.DefaultConfig(),
	}
}

// check rejects invalid settings. It allows only loopback addresses for the APIs, because the credentials of the sandbox are
// public.
func (c Config) check() error {
	for _, each := range []address{
		{"BROKER_ADDRESS", &c.BrokerAddress}, {"PROVISIONER_ADDRESS", &c.ProvisionerAddress}, {"BUNDLES_ADDRESS", &c.BundlesAddress},
	} {
		if auth.BeyondLoopback(*each.value) {
			return fmt.Errorf("%s%s: %s is reachable from other machines, but the password of the sandbox is public: "+
				"use a loopback address, such as 127.0.0.1:8080", Prefix, each.variable, *each.value)
		}
	}

	switch c.KymaInstaller {
	case environment.InstallerProvisioner:
	case environment.InstallerReconciler, environment.InstallerLifecycleManager:
		if !c.Integrations {
			return fmt.Errorf("%sKYMA_INSTALLER=%s needs %sINTEGRATIONS=true", Prefix, c.KymaInstaller, Prefix)
		}
	default:
		return fmt.Errorf("%sKYMA_INSTALLER: %q is not one of %s, %s and %s", Prefix, c.KymaInstaller,
			environment.InstallerProvisioner, environment.InstallerReconciler, environment.InstallerLifecycleManager)
	}

	if c.ClusterCreation <= 0 {
		return fmt.Errorf("%sCLUSTER_CREATION must be positive, such as 5s", Prefix)
	}

	return nil
}

// provisioner returns the configuration of the Provisioner. Runtimes are registered only if director, the address of a Director,
// is not empty. The Provisioner's API has no authentication, which is permitted on loopback addresses.
func (c Config) provisioner(keys secret.String, director string) provisioner.Config {
	config := provisioner.DefaultConfig()
	config.Address, config.StatusAddress = c.ProvisionerAddress, c.ProvisionerStatusAddress
	config.ShutdownDelay = 0 // there is no load balancer
	config.Database.Driver, config.Database.Path = storage.DriverSQLite, filepath.Join(c.Dir, "provisioner.db")
	config.Database.SecretKeys = keys
	config.Gardener.Project = fakegarden.DefaultProject
	config.Tracing.Endpoint = c.TracingEndpoint

	if director != "" {
		config.Director.Enabled, config.Director.URL = true, "http://"+director+fakedirector.GraphQLPath
		config.Director.OAuthPath = filepath.Join(c.Dir, directorCredentials)
	}

	return config
}

// broker returns the configuration of the broker, which calls the Provisioner at provisionerAddress. The broker has one user,
// with the roles for the Open Service Broker API and for the operator API. Settings that the sandbox does not need to change keep
// their production defaults, so the sandbox behaves like a production broker.
func (c Config) broker(keys secret.String, provisionerAddress string) broker.Config {
	config := broker.DefaultConfig()
	config.Address, config.StatusAddress = c.BrokerAddress, c.StatusAddress
	config.ShutdownDelay = 0
	config.Database.Path = filepath.Join(c.Dir, brokerDatabase)
	config.Database.SecretKeys = keys
	config.Provisioner.URL = "http://" + provisionerAddress + "/graphql"
	config.AuthBasicUsers = User + ":" + Password + ":osb+admin"
	config.PublicURL = "http://" + c.BrokerAddress
	config.DashboardURL = c.DashboardURL
	config.Tracing.Endpoint = c.TracingEndpoint
	config.Catalog.Dir = c.CatalogDir
	config.OwnClusterNetworks, config.Webhooks.Networks = loopback(), loopback()

	if c.Bundles {
		config.Console.BundlesKubeconfigPath = filepath.Join(c.Dir, bundlesKubeconfig)
	}

	config.Kyma.Version, config.Kyma.OnDemandVersion, config.Kyma.Installer = kymaVersion, true, c.KymaInstaller

	return config
}

// kymaVersion is the sample Kyma release that is installed for plans with Kyma.
const kymaVersion = "1.1.0"

// loopback returns the loopback networks. The sandbox's clusters listen there, and webhook receivers may listen there too.
func loopback() []string { return []string{"127.0.0.0/8", "::1/128"} }

// keys returns the keys that encrypt stored data, and generates them at the first start. It fails if a database exists but the
// keys are missing, because the data in the database could not be decrypted.
func (c Config) keys() (secret.String, error) {
	path := filepath.Join(c.Dir, "secret-keys")

	stored, err := os.ReadFile(path)
	if err == nil {
		return secret.String(stored), nil
	}

	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the keys of the sandbox: %w", err)
	}

	if _, err := os.Stat(filepath.Join(c.Dir, brokerDatabase)); err == nil {
		return "", fmt.Errorf("%s is missing, and the data in its folder cannot be decrypted without this file: restore the file, or remove the folder", path)
	}

	keys := secret.NewKey("sandbox")
	if err := atomicfile.Write(path, []byte(keys.Reveal())); err != nil {
		return "", fmt.Errorf("writing the keys of the sandbox: %w", err)
	}

	return keys, nil
}
