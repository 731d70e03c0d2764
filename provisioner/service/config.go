package service

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/takeover"
)

// Config is the configuration of the Provisioner. The variables of Kyma Provisioner keep their names and defaults, so that an
// installation can move to this Provisioner with the same settings. An operation fails when one of its waits exceeds its limit,
// unless the help text of the limit says otherwise.
type Config struct {
	replica.Config `envPrefix:""`

	APIEndpoint           string `env:"API_ENDPOINT"            help:"path of the GraphQL API"`
	PlaygroundAPIEndpoint string `env:"PLAYGROUND_API_ENDPOINT" help:"path of the API for the playground, as browsers see it"`

	Director Director `envPrefix:"DIRECTOR_"`
	OAuth    OAuth    `envPrefix:""`

	ProvisioningTimeout   ProvisioningTimeout   `envPrefix:"PROVISIONING_TIMEOUT_"`
	DeprovisioningTimeout DeprovisioningTimeout `envPrefix:"DEPROVISIONING_TIMEOUT_"`
	HibernationTimeout    HibernationTimeout    `envPrefix:"HIBERNATION_TIMEOUT_"`
	Gardener              Gardener              `envPrefix:"GARDENER_"`
	Kyma                  Kyma                  `envPrefix:"KYMA_"`
	Former                takeover.Config       `envPrefix:"FORMER_"`

	EnqueueInProgressOperations bool `env:"ENQUEUE_IN_PROGRESS_OPERATIONS" help:"if false, the engine ignores operations that were accepted before the replica started"`
}

// Director configures the registration of runtimes. If it is disabled, the Provisioner assigns the IDs of runtimes itself, and
// runtime agents cannot connect.
type Director struct {
	Enabled   bool   `env:"ENABLED"    help:"register runtimes in Director, which assigns their IDs"`
	URL       string `env:"URL"        help:"URL of Director's GraphQL API"`
	OAuthPath string `env:"OAUTH_PATH" help:"YAML file with the credentials for Director; if empty, the Secret is used"`
	CAFile    string `env:"CA_FILE"    help:"file with the CA certificates for Director and its token endpoint; if empty, the system's CA certificates are used"`
	Calls     int    `env:"CALLS"      help:"maximum number of concurrent calls to Director, per replica"`

	Timeout time.Duration `env:"TIMEOUT" help:"maximum duration of a call to Director, or to its token endpoint"`
}

// OAuth configures how the Provisioner authenticates to Director. The Secret is read only if Director.OAuthPath is empty.
type OAuth struct {
	SkipDirectorCertVerification bool   `env:"SKIP_DIRECTOR_CERT_VERIFICATION" help:"do not verify the certificate of Director"`
	CredentialsNamespace         string `env:"CREDENTIALS_NAMESPACE"           help:"namespace of the Secret with the credentials for Director"`
	CredentialsSecretName        string `env:"OAUTH_CREDENTIALS_SECRET_NAME"   help:"Secret with the credentials for Director, in the cluster of the Provisioner"`
}

// ProvisioningTimeout limits the waits in provision and upgrade operations. Each limit starts with its wait;
// APP_OPERATION_TIMEOUT limits the whole operation.
type ProvisioningTimeout struct {
	ClusterDomains         time.Duration `env:"CLUSTER_DOMAINS"         help:"maximum time to wait for Gardener to assign the domain of a cluster"`
	ClusterCreation        time.Duration `env:"CLUSTER_CREATION"        help:"maximum time to wait for the creation of a cluster"`
	BindingsCreation       time.Duration `env:"BINDINGS_CREATION"       help:"maximum time to wait for a cluster to accept its administrators"`
	ShootRefresh           time.Duration `env:"SHOOT_REFRESH"           help:"maximum time to wait for Gardener to start changing a cluster"`
	ShootUpgrade           time.Duration `env:"SHOOT_UPGRADE"           help:"maximum time to wait for the change of a cluster"`
	InstallationTriggering time.Duration `env:"INSTALLATION_TRIGGERING" help:"maximum time to wait for the installation of Kyma to start"`
	Installation           time.Duration `env:"INSTALLATION"            help:"maximum time to wait for the installation of Kyma to finish"`
	UpgradeTriggering      time.Duration `env:"UPGRADE_TRIGGERING"      help:"maximum time to wait for the upgrade or rollback of Kyma to start"`
	Upgrade                time.Duration `env:"UPGRADE"                 help:"maximum time to wait for the upgrade or rollback of Kyma to finish"`
	AgentConfiguration     time.Duration `env:"AGENT_CONFIGURATION"     help:"maximum time to wait for the configuration of the runtime agent"`
	AgentConnection        time.Duration `env:"AGENT_CONNECTION"        help:"maximum time to wait for the connection of the runtime agent"`
}

// DeprovisioningTimeout limits the waits in deprovision operations.
type DeprovisioningTimeout struct {
	ClusterCleanup            time.Duration `env:"CLUSTER_CLEANUP"              help:"maximum time to wait for the deletion of the services of a cluster with Kyma; the remaining services are deleted with the cluster"`
	WaitingForClusterDeletion time.Duration `env:"WAITING_FOR_CLUSTER_DELETION" help:"maximum time to wait for the deletion of a cluster"`
}

// HibernationTimeout limits the waits in hibernations and wake-ups.
type HibernationTimeout struct {
	WaitingForClusterHibernation time.Duration `env:"WAITING_FOR_CLUSTER_HIBERNATION" help:"maximum time to wait for the hibernation or the wake-up of a cluster"`
}

// Gardener configures the Gardener project of the clusters. A watch reports changes to Shoots immediately. If the watch misses
// a change, the next poll after PollInterval detects it.
type Gardener struct {
	Project                string        `env:"PROJECT"                           help:"name of the Gardener project, to which the kubeconfig must give access"`
	KubeconfigPath         string        `env:"KUBECONFIG_PATH"                   help:"path of the kubeconfig for Gardener; reloaded when the file changes"`
	ClusterCleanupSelector string        `env:"CLUSTER_CLEANUP_RESOURCE_SELECTOR" help:"address prefix of the service brokers whose services are deleted before a cluster with Kyma is deleted"`
	KubeconfigValidity     time.Duration `env:"KUBECONFIG_VALIDITY"               help:"validity of admin kubeconfigs, at least 10m"`
	PollInterval           time.Duration `env:"POLL_INTERVAL"                     help:"interval at which a Shoot is read, in addition to the watch"`
	Calls                  int           `env:"CALLS"                             help:"maximum number of concurrent calls to Gardener, per replica"`
	Shoots                 Shoots        `envPrefix:""`
}

// DefaultConfig returns the default of each variable, as listed in docs/operator/configuration.md. The defaults alone are not
// sufficient: for example, the database key has none.
func DefaultConfig() Config {
	shared := replica.DefaultConfig("provisioner", storage.DriverPostgres)
	shared.Address, shared.StatusAddress = "127.0.0.1:3000", "127.0.0.1:3001"

	return Config{
		Config:                shared,
		APIEndpoint:           "/graphql",
		PlaygroundAPIEndpoint: "/graphql",
		Director:              Director{URL: "https://compass-gateway-auth-oauth.kyma.local/director/graphql", Calls: 16, Timeout: 30 * time.Second},
		OAuth:                 OAuth{CredentialsNamespace: "compass-system", CredentialsSecretName: "compass-provisioner-credentials"},
		ProvisioningTimeout: ProvisioningTimeout{
			ClusterDomains:         10 * time.Minute,
			ClusterCreation:        time.Hour,
			BindingsCreation:       5 * time.Minute,
			ShootRefresh:           5 * time.Minute,
			ShootUpgrade:           30 * time.Minute,
			InstallationTriggering: 20 * time.Minute,
			Installation:           time.Hour,
			UpgradeTriggering:      20 * time.Minute,
			Upgrade:                time.Hour,
			AgentConfiguration:     15 * time.Minute,
			AgentConnection:        15 * time.Minute,
		},
		DeprovisioningTimeout: DeprovisioningTimeout{ClusterCleanup: 20 * time.Minute, WaitingForClusterDeletion: time.Hour},
		HibernationTimeout:    HibernationTimeout{WaitingForClusterHibernation: time.Hour},
		Gardener: Gardener{
			Project: "gardenerProject", KubeconfigPath: "./dev/kubeconfig.yaml", Shoots: Shoots{
				Extensions: shoot.DefaultExtensions(), KubernetesVersion: "1.35", MachineTypes: defaultMachineTypes(),
			},
			ClusterCleanupSelector: "https://service-manager.",
			KubeconfigValidity:     8 * time.Hour, PollInterval: 20 * time.Second, Calls: 32,
		},
		Kyma: Kyma{ReleasesCalls: 8, Bundles: Bundles{
			Namespace: "bundle-system", Class: "core-rukpak-io-plain", DeletionTimeout: 5 * time.Minute, Calls: 32,
		}},
		EnqueueInProgressOperations: true,
	}
}

// check returns one error that lists all invalid and conflicting settings. It neither calls an upstream nor reads a file.
func (c Config) check() error {
	errs := []error{c.Check(), c.Gardener.Shoots.check(), c.checkWaits(), c.Kyma.Bundles.check()}

	for _, rule := range []struct {
		broken  bool
		problem string
	}{
		{c.Gardener.PollInterval <= 0, "APP_GARDENER_POLL_INTERVAL: must be positive"},
		{
			c.Director.CAFile != "" && c.OAuth.SkipDirectorCertVerification,
			"APP_DIRECTOR_CA_FILE, APP_SKIP_DIRECTOR_CERT_VERIFICATION: set only one of them, because the CA certificates have no effect without verification",
		},
		{c.Director.Calls < 1, "APP_DIRECTOR_CALLS: must be at least 1"},
		{c.Director.Timeout <= 0, "APP_DIRECTOR_TIMEOUT: must be positive"},
		{c.Gardener.KubeconfigValidity < 10*time.Minute, "APP_GARDENER_KUBECONFIG_VALIDITY: Gardener requires at least 10m"},
		{c.Gardener.Calls < 1, "APP_GARDENER_CALLS: must be at least 1"},
	} {
		if rule.broken {
			errs = append(errs, errors.New(rule.problem))
		}
	}

	return errors.Join(errs...)
}

// missing returns one error that lists all missing and invalid required settings. An operator who starts with only the variables
// of Kyma Provisioner thus sees all of them at once. missing checks the kubeconfig of Gardener only if remote is true.
func (c Config) missing(remote bool) error {
	_, err := c.Database.Keys()
	errs := []error{err}

	if remote {
		_, err := gardener.Connect(c.Gardener.KubeconfigPath)
		errs = append(errs, err)
	}

	return errors.Join(errs...)
}

// unregistered returns a warning if Director's address is set but Director is disabled, or an empty string. Kyma Provisioner
// always uses Director.
func (c Config) unregistered() string {
	if c.Director.Enabled || c.Director.URL == DefaultConfig().Director.URL {
		return ""
	}

	return "APP_DIRECTOR_URL is set, but APP_DIRECTOR_ENABLED is not true: runtimes are not registered in Director"
}

// checkWaits rejects limits that are not positive. With such a limit, a step would fail in the middle of an operation, long
// after startup. checkWaits reads the names of the variables from the tags, so a new limit needs no change here.
func (c Config) checkWaits() error {
	var errs []error

	for _, wait := range slices.Concat(
		program.Variables(program.Prefix+"PROVISIONING_TIMEOUT_", c.ProvisioningTimeout),
		program.Variables(program.Prefix+"DEPROVISIONING_TIMEOUT_", c.DeprovisioningTimeout),
		program.Variables(program.Prefix+"HIBERNATION_TIMEOUT_", c.HibernationTimeout),
	) {
		if limit, err := time.ParseDuration(wait.Default); err != nil || limit <= 0 {
			errs = append(errs, fmt.Errorf("%s: must be positive", wait.Name))
		}
	}

	return errors.Join(errs...)
}
