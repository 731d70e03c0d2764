package service

import (
	"time"

	"github.com/environment-broker/environment-broker/internal/replica"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

// Config is the broker's configuration.
type Config struct {
	replica.Config `envPrefix:""`

	Provisioner Provisioner `envPrefix:"PROVISIONER_"`

	DefaultRequestRegion string            `env:"DEFAULT_REQUEST_REGION" help:"platform region of requests whose path names none"`
	OSBStrict            bool              `env:"OSB_STRICT"             help:"insist on organization_guid and space_guid"`
	KubernetesVersion    string            `env:"KUBERNETES_VERSION"     help:"Kubernetes version of new runtimes"`
	Catalog              Catalog           `envPrefix:""`
	TargetSecrets        map[string]string `env:"TARGET_SECRETS"         help:"provider:name,… of the CredentialsBindings in Gardener"`
	BindingLimit         int               `env:"BINDING_LIMIT"          help:"how many bindings an instance may have at the same time"`
	DashboardURL         string            `env:"DASHBOARD_URL"          help:"console of runtimes; empty for none"`
	PublicURL            string            `env:"PUBLIC_URL"             help:"address at which users reach the broker, for links"`
	OIDC                 OIDC              `envPrefix:"OIDC_"`

	ExpirationPeriods         map[string]time.Duration `env:"EXPIRATION_PERIODS"          help:"plan:duration,… of the plans whose instances may be suspended and expire; with 0 they expire only when an operator says so"`
	SubaccountMovementEnabled bool                     `env:"SUBACCOUNT_MOVEMENT_ENABLED" help:"let instances move to another global account, by an update of their context"`
}

// Provisioner is where runtimes are ordered.
type Provisioner struct {
	URL            string        `env:"URL"             help:"GraphQL API of the Provisioner"`
	Timeout        time.Duration `env:"TIMEOUT"         help:"how long one call may take"`
	User           string        `env:"USER"            help:"user for the Provisioner; empty for none"`
	Password       secret.String `env:"PASSWORD"        help:"password of the user"`
	CAFile         string        `env:"CA_FILE"         help:"authorities of its certificate; empty for those of the system. This file and those of the certificate are read anew when they change"`
	CertFile       string        `env:"CERT_FILE"       help:"certificate that the broker shows it; empty for none"`
	KeyFile        string        `env:"KEY_FILE"        help:"key of the certificate"`
	RuntimeTimeout time.Duration `env:"RUNTIME_TIMEOUT" help:"how long the Provisioner may take for a runtime"`
	PollLimit      int           `env:"POLL_LIMIT"      help:"how many operations it is asked about in a second"`
	Calls          int           `env:"CALLS"           help:"how many calls to it may run at the same time, in one replica"`
}

// Catalog is what may be ordered.
type Catalog struct {
	Dir                  string   `env:"CATALOG_DIR"              help:"folder with the files of the catalog, read anew when they change; empty for those that the broker ships with"`
	EnablePlans          []string `env:"ENABLE_PLANS"             help:"plans that new instances may be ordered of, comma-separated; empty for all"`
	OnlySingleTrialPerGA bool     `env:"ONLY_SINGLE_TRIAL_PER_GA" help:"a global account may have one instance of plan trial"`
	OnlyOneFreePerGA     bool     `env:"ONLY_ONE_FREE_PER_GA"     help:"a global account may have one instance of plan free"`
}

// OIDC is how users of runtimes log in, as their kubeconfigs say.
type OIDC struct {
	IssuerURL string `env:"ISSUER_URL" help:"issuer in the kubeconfigs for users, and of clusters whose order names none"`
	ClientID  string `env:"CLIENT_ID"  help:"client id in the kubeconfigs for users"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	shared := replica.DefaultConfig("broker", storage.DriverSQLite)
	shared.Address, shared.StatusAddress = "127.0.0.1:8080", "127.0.0.1:8071"

	return Config{
		Config: shared,
		Provisioner: Provisioner{
			URL: "http://127.0.0.1:3000/graphql", Timeout: 120 * time.Second,
			RuntimeTimeout: 6 * time.Hour, PollLimit: 50, Calls: 32,
		},
		DefaultRequestRegion: "cf-eu10",
		KubernetesVersion:    "1.35.4",
		Catalog:              Catalog{OnlySingleTrialPerGA: true},
		TargetSecrets:        map[string]string{"aws": "aws", "azure": "azure", "gcp": "gcp", "openstack": "openstack"},
		BindingLimit:         10,
		PublicURL:            "http://127.0.0.1:8080",
		ExpirationPeriods:    map[string]time.Duration{"trial": 14 * 24 * time.Hour, "free": 30 * 24 * time.Hour},
	}
}
