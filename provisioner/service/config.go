package service

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/config"
	"github.com/environment-broker/environment-broker/internal/replica"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage"
)

// Config is the Provisioner's configuration. Names and defaults are those of the former Provisioner where it had them.
type Config struct {
	replica.Config `envPrefix:""`

	APIEndpoint           string `env:"API_ENDPOINT"            help:"path of the GraphQL API"`
	PlaygroundAPIEndpoint string `env:"PLAYGROUND_API_ENDPOINT" help:"path at which the playground finds the API"`

	Director Director `envPrefix:"DIRECTOR_"`
	OAuth    OAuth    `envPrefix:""`

	ProvisioningTimeout   ProvisioningTimeout   `envPrefix:"PROVISIONING_TIMEOUT_"`
	DeprovisioningTimeout DeprovisioningTimeout `envPrefix:"DEPROVISIONING_TIMEOUT_"`
	HibernationTimeout    HibernationTimeout    `envPrefix:"HIBERNATION_TIMEOUT_"`
	Gardener              Gardener              `envPrefix:"GARDENER_"`
	Kyma                  Kyma                  `envPrefix:"KYMA_"`

	EnqueueInProgressOperations bool `env:"ENQUEUE_IN_PROGRESS_OPERATIONS" help:"false leaves operations alone that were accepted before the start of the replica"`
}

// Director is where runtimes are registered.
type Director struct {
	Enabled   bool   `env:"ENABLED"    help:"register runtimes in Director, which then gives them their ids"`
	URL       string `env:"URL"        help:"GraphQL API of Director"`
	OAuthPath string `env:"OAUTH_PATH" help:"YAML file with the credentials for Director; empty: the Secret has them"`
	CAFile    string `env:"CA_FILE"    help:"authorities of the certificates of Director and of its token endpoint; empty for those of the system"`
	Calls     int    `env:"CALLS"      help:"how many calls to it may run at the same time, in one replica"`
}

// OAuth is how the Provisioner proves itself to Director.
type OAuth struct {
	SkipDirectorCertVerification bool   `env:"SKIP_DIRECTOR_CERT_VERIFICATION" help:"do not check Director's certificate"`
	CredentialsNamespace         string `env:"CREDENTIALS_NAMESPACE"           help:"namespace of the Secret"`
	CredentialsSecretName        string `env:"OAUTH_CREDENTIALS_SECRET_NAME"   help:"Secret with the credentials for Director, in the cluster that the Provisioner runs in"`
}

// ProvisioningTimeout bounds the waits of a provisioning.
type ProvisioningTimeout struct {
	ClusterDomains         time.Duration `env:"CLUSTER_DOMAINS"         help:"until a cluster has its domain"`
	ClusterCreation        time.Duration `env:"CLUSTER_CREATION"        help:"until a cluster is made"`
	BindingsCreation       time.Duration `env:"BINDINGS_CREATION"       help:"until a cluster has let its administrators be bound"`
	ShootRefresh           time.Duration `env:"SHOOT_REFRESH"           help:"until Gardener takes up the change of a cluster"`
	ShootUpgrade           time.Duration `env:"SHOOT_UPGRADE"           help:"until a cluster is changed"`
	InstallationTriggering time.Duration `env:"INSTALLATION_TRIGGERING" help:"until the installation of Kyma has begun"`
	Installation           time.Duration `env:"INSTALLATION"            help:"until Kyma is installed"`
	UpgradeTriggering      time.Duration `env:"UPGRADE_TRIGGERING"      help:"until the upgrade of Kyma, or its roll back, has begun"`
	Upgrade                time.Duration `env:"UPGRADE"                 help:"until Kyma is upgraded, or rolled back"`
	AgentConfiguration     time.Duration `env:"AGENT_CONFIGURATION"     help:"until the runtime agent is configured"`
	AgentConnection        time.Duration `env:"AGENT_CONNECTION"        help:"until the runtime agent is connected"`
}

// DeprovisioningTimeout bounds the waits of a deprovisioning.
type DeprovisioningTimeout struct {
	ClusterCleanup            time.Duration `env:"CLUSTER_CLEANUP"              help:"until the services of a cluster with Kyma are gone; then the cluster goes with them"`
	WaitingForClusterDeletion time.Duration `env:"WAITING_FOR_CLUSTER_DELETION" help:"until a cluster is gone"`
}

// HibernationTimeout bounds the waits of a hibernation and of a waking.
type HibernationTimeout struct {
	WaitingForClusterHibernation time.Duration `env:"WAITING_FOR_CLUSTER_HIBERNATION" help:"until a cluster sleeps, or is awake"`
}

// Gardener is where clusters are made.
type Gardener struct {
	Project                string        `env:"PROJECT"                           help:"project that the kubeconfig's account belongs to"`
	KubeconfigPath         string        `env:"KUBECONFIG_PATH"                   help:"file of the kubeconfig for Gardener; it is read anew when it changes"`
	ClusterCleanupSelector string        `env:"CLUSTER_CLEANUP_RESOURCE_SELECTOR" help:"how the addresses begin of the service brokers whose services go before a cluster with Kyma does"`
	KubeconfigValidity     time.Duration `env:"KUBECONFIG_VALIDITY"               help:"how long an admin kubeconfig works, 10m at least"`
	PollInterval           time.Duration `env:"POLL_INTERVAL"                     help:"how often a Shoot is looked at beside the watch"`
	Calls                  int           `env:"CALLS"                             help:"how many calls to it may run at the same time, in one replica"`
	Shoots                 Shoots        `envPrefix:""`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	shared := replica.DefaultConfig("provisioner", storage.DriverPostgres)
	shared.Address, shared.StatusAddress = "127.0.0.1:3000", "127.0.0.1:3001"

	return Config{
		Config:                shared,
		APIEndpoint:           "/graphql",
		PlaygroundAPIEndpoint: "/graphql",
		Director:              Director{URL: "https://compass-gateway-auth-oauth.kyma.local/director/graphql", Calls: 16},
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
			Project: "gardenerProject", KubeconfigPath: "./dev/kubeconfig.yaml", Shoots: Shoots{Extensions: shoot.DefaultExtensions()},
			ClusterCleanupSelector: "https://service-manager.",
			KubeconfigValidity:     8 * time.Hour, PollInterval: 20 * time.Second, Calls: 32,
		},
		Kyma:                        Kyma{ReleasesCalls: 8},
		EnqueueInProgressOperations: true,
	}
}

// check finds settings that exclude each other or ask for what is not there.
func (c Config) check() error {
	wrong := []error{c.Check(), c.Gardener.Shoots.check(), c.checkWaits()}

	if c.Gardener.PollInterval <= 0 {
		wrong = append(wrong, errors.New("APP_GARDENER_POLL_INTERVAL: it has to be longer than nothing"))
	}

	if c.Director.CAFile != "" && c.OAuth.SkipDirectorCertVerification {
		wrong = append(wrong, errors.New("APP_DIRECTOR_CA_FILE, APP_SKIP_DIRECTOR_CERT_VERIFICATION: whoever is believed unchecked needs no authority, set one of them"))
	}

	if c.Director.Calls < 1 {
		wrong = append(wrong, errors.New("APP_DIRECTOR_CALLS: it has to be at least 1"))
	}

	if c.Gardener.KubeconfigValidity < 10*time.Minute {
		wrong = append(wrong, errors.New("APP_GARDENER_KUBECONFIG_VALIDITY: Gardener makes none that is valid for less than 10m"))
	}

	if c.Gardener.Calls < 1 {
		wrong = append(wrong, errors.New("APP_GARDENER_CALLS: it has to be at least 1"))
	}

	return errors.Join(wrong...)
}

// checkWaits finds limits that leave no time at all.
func (c Config) checkWaits() error {
	var wrong []error

	for _, wait := range slices.Concat(
		config.Variables(config.Prefix+"PROVISIONING_TIMEOUT_", c.ProvisioningTimeout),
		config.Variables(config.Prefix+"DEPROVISIONING_TIMEOUT_", c.DeprovisioningTimeout),
		config.Variables(config.Prefix+"HIBERNATION_TIMEOUT_", c.HibernationTimeout),
	) {
		if limit, err := time.ParseDuration(wait.Default); err != nil || limit <= 0 {
			wrong = append(wrong, fmt.Errorf("%s: it has to be longer than nothing", wait.Name))
		}
	}

	return errors.Join(wrong...)
}
