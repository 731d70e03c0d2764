package service

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/console/session"
	"github.com/environment-broker/environment-broker/broker/expiry"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/clients/avs"
	"github.com/environment-broker/environment-broker/internal/clients/cis"
	"github.com/environment-broker/environment-broker/internal/clients/cleanuphook"
	"github.com/environment-broker/environment-broker/internal/clients/edp"
	"github.com/environment-broker/environment-broker/internal/clients/gardenclient"
	"github.com/environment-broker/environment-broker/internal/clients/ias"
	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/clients/notification"
	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream/networks"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/takeover"
)

// Config is the broker's configuration. Package program reads it from the environment; the tags name the variables
// and describe them for the reference. DefaultConfig returns the defaults.
type Config struct {
	replica.Config `envPrefix:""`

	Provisioner Provisioner `envPrefix:"PROVISIONER_"`

	CIS cis.Config `envPrefix:"CIS_"`
	EDP edp.Config `envPrefix:"EDP_"`
	IAS ias.Config `envPrefix:"IAS_"`
	AvS avs.Config `envPrefix:"AVS_"`

	Notification     notification.Config     `envPrefix:"NOTIFICATION_"`
	LifecycleManager lifecyclemanager.Config `envPrefix:"LIFECYCLE_MANAGER_"`
	Reconciler       reconciler.Config       `envPrefix:"RECONCILER_"`

	DefaultRequestRegion string            `env:"DEFAULT_REQUEST_REGION" help:"platform region of requests whose path contains none"`
	PlatformsFile        string            `env:"PLATFORMS_FILE"         help:"file that names the platforms, with their credentials, regions and tenants; the service reloads the file when it changes. If empty, all clients with the osb role are one platform"`
	QuotasFile           string            `env:"QUOTAS_FILE"            help:"file with the quotas, which limit how many instances tenants may have; the service reloads the file when it changes. If empty, there are no quotas"`
	OSBStrict            bool              `env:"OSB_STRICT"             help:"require organization_guid and space_guid"`
	KubernetesVersion    string            `env:"KUBERNETES_VERSION"     help:"Kubernetes version of new runtimes"`
	Catalog              Catalog           `envPrefix:""`
	Former               takeover.Config   `envPrefix:"FORMER_"`
	Kyma                 Kyma              `envPrefix:""`
	TargetSecrets        map[string]string `env:"TARGET_SECRETS"         help:"names of the CredentialsBindings in Gardener with the cloud credentials for new clusters, as provider:name,…; unused if the account pool has rules"`
	AccountPool          AccountPool       `envPrefix:"ACCOUNT_POOL_"`
	Gardener             Gardener          `envPrefix:"GARDENER_"`
	OwnClusterTimeout    time.Duration     `env:"OWN_CLUSTER_TIMEOUT"    help:"maximum time for which the creation of an instance, or a change of its kubeconfig, tries to reach a cluster that the tenant brings"`
	OwnClusterNetworks   []string          `env:"OWN_CLUSTER_NETWORKS"   help:"networks in which tenants' clusters may have addresses that are not public, as CIDR,…, for example 10.0.0.0/8; without it, the broker connects only to public addresses"`
	ReconcileInterval    time.Duration     `env:"RECONCILE_INTERVAL"     help:"interval at which the broker compares its instances with the Provisioner, Gardener and Director, for metrics and the log; 0 turns it off"`
	BTPCheckInterval     time.Duration     `env:"BTP_CHECK_INTERVAL"     help:"interval at which the broker compares the Secret of the SAP BTP service operator in each runtime with the credentials of its instance, and repairs it; 0 turns it off"`
	BindingLimit         int               `env:"BINDING_LIMIT"          help:"maximum number of unexpired bindings of an instance"`
	UnbindWait           time.Duration     `env:"UNBIND_WAIT"            help:"time for which an asynchronous unbind waits for the removal before it responds with 202, at most 8s; 0 means no wait"`
	DashboardURL         string            `env:"DASHBOARD_URL"          help:"URL of an instance's dashboard, which platforms show, with the placeholder {instance_id}; if empty, the page of the instance in the console at APP_PUBLIC_URL, or no dashboard if the console is off"`
	DirectorDashboard    bool              `env:"DIRECTOR_DASHBOARD"     help:"use the console URL of a new runtime, if Director has one, as the dashboard of the instance; the Provisioner passes it on"`
	PublicURL            string            `env:"PUBLIC_URL"             help:"URL of the broker in links for users; if empty, there are no links"`
	OIDC                 OIDC              `envPrefix:"OIDC_"`
	Events               Events            `envPrefix:"EVENT_"`
	Webhooks             Webhooks          `envPrefix:"WEBHOOK_"`
	Kubeconfigs          Kubeconfigs       `envPrefix:"KUBECONFIG_"`
	Console              session.Config    `envPrefix:"CONSOLE_"`

	ExpirationPeriods         map[string]time.Duration `env:"EXPIRATION_PERIODS"          help:"plans whose instances expire and can be suspended, with the lifetimes of the instances, as plan:duration,…; with 0, instances expire only when an operator expires them"`
	JobLimits                 map[string]int           `env:"JOB_LIMITS"                  help:"how many items a run of a job may change without confirmation, as job:number,…; 0 means no limit, and a missing job keeps its default"`
	JobTimes                  map[string]string        `env:"JOB_TIMES"                   help:"times of day in UTC at which jobs run once a day instead of at their interval, as job:HH:MM,…"`
	SubaccountMovementEnabled bool                     `env:"SUBACCOUNT_MOVEMENT_ENABLED" help:"allow updates of the context that move an instance to another global account"`
}

// Check returns an error that names the variables of all invalid settings. It does not read files: New checks the files that the
// settings name.
func (c Config) Check() error {
	errs := []error{
		c.Config.Check(), c.CIS.Check(), c.EDP.Check(), c.IAS.Check(), c.AvS.Check(), c.Notification.Check(), c.Reconciler.Check(),
		c.checkAccounts(), c.checkKyma(), c.Console.Check(c.PublicURL, c.Access.OIDC.IssuerURL),
	}

	for _, limit := range []struct {
		variable string
		value    int
	}{
		{"APP_PROVISIONER_POLL_LIMIT", c.Provisioner.PollLimit},
		{"APP_PROVISIONER_CALLS", c.Provisioner.Calls},
		{"APP_CONTROL_PLANE_CALLS", c.Kyma.Calls},
		{"APP_BINDING_LIMIT", c.BindingLimit},
		{"APP_EVENT_STREAMS", c.Events.Streams},
	} {
		errs = append(errs, failure.Unless(limit.value > 0, "%s: must be at least 1", limit.variable))
	}

	_, ownClustersErr := networks.Parse(c.OwnClusterNetworks)
	_, webhooksErr := networks.Parse(c.Webhooks.Networks)

	return errors.Join(append(errs,
		failure.Unless(c.AvS.API == "" || c.AvS.External.Disabled || c.Gardener.ShootDomain != "",
			"APP_AVS_API_ENDPOINT: also set APP_GARDENER_SHOOT_DOMAIN, or APP_AVS_EXTERNAL_TESTER_DISABLED=true"),
		failure.Unless(c.DashboardURL == "" || strings.Contains(c.DashboardURL, "{instance_id}"),
			"APP_DASHBOARD_URL: must contain {instance_id}, because each instance has its own link"),
		failure.Unless(c.OwnClusterTimeout > 0, "APP_OWN_CLUSTER_TIMEOUT: must be positive"),
		failure.While(ownClustersErr, "APP_OWN_CLUSTER_NETWORKS"),
		failure.While(webhooksErr, "APP_WEBHOOK_NETWORKS"),
		failure.Unless(c.Events.Retention > 0, "APP_EVENT_RETENTION: must be positive"),
		failure.Unless(c.BTPCheckInterval >= 0, "APP_BTP_CHECK_INTERVAL: must not be negative; 0 turns the check off"),
		failure.Unless(c.ReconcileInterval >= 0, "APP_RECONCILE_INTERVAL: must not be negative; 0 turns the comparison off"),
		failure.Unless(c.UnbindWait >= 0, "APP_UNBIND_WAIT: must not be negative"),
		failure.While(expiry.Periods(c.ExpirationPeriods).Check(), "APP_EXPIRATION_PERIODS"),
		c.checkJobs(),
	)...)
}

// Provisioner configures the connection to the Provisioner, and limits the load that the broker puts on it.
type Provisioner struct {
	URL            string        `env:"URL"             help:"GraphQL API of the Provisioner"`
	Timeout        time.Duration `env:"TIMEOUT"         help:"timeout of one call to the Provisioner"`
	User           string        `env:"USER"            help:"user for the Provisioner; empty for none"`
	Password       secret.String `env:"PASSWORD"        help:"password of the user"`
	CAFile         string        `env:"CA_FILE"         help:"file with the CA certificates for the Provisioner; if empty, the system's CA certificates are used. This file, the certificate and the key are reloaded when they change"`
	CertFile       string        `env:"CERT_FILE"       help:"client certificate of the broker; empty for none"`
	KeyFile        string        `env:"KEY_FILE"        help:"key of the client certificate"`
	RuntimeTimeout time.Duration `env:"RUNTIME_TIMEOUT" help:"maximum time that an operation waits for the Provisioner"`
	PollLimit      int           `env:"POLL_LIMIT"      help:"maximum number of requests per second for the states of operations, per replica, while the Provisioner has no feed"`
	Calls          int           `env:"CALLS"           help:"maximum number of concurrent calls to the Provisioner, per replica"`
}

// Catalog configures the files of the catalog, the plans that are offered, and which of them are limited to one instance per account.
// Most variables have the same names as in the Kyma Environment Broker.
type Catalog struct {
	Dir                  string   `env:"CATALOG_DIR"              help:"folder with the files of the catalog, which are reloaded when they change; empty for the built-in files"`
	EnablePlans          []string `env:"ENABLE_PLANS"             help:"plans that are available for new instances, comma-separated; empty for all"`
	OnlySingleTrialPerGA bool     `env:"ONLY_SINGLE_TRIAL_PER_GA" help:"limit each global account to one instance of the trial plan"`
	OnlyOneFreePerGA     bool     `env:"ONLY_ONE_FREE_PER_GA"     help:"limit each global account to one instance of the free plan"`
}

// Kyma configures how runtimes get Kyma. Variables that also exist in the Kyma Environment Broker have the same names.
type Kyma struct {
	Version                string                    `env:"KYMA_VERSION"                  help:"default Kyma version on new runtimes of plans with a kyma section, a release that the installer knows; if empty, only Lifecycle Manager can install Kyma"`
	Installer              environment.KymaInstaller `env:"KYMA_INSTALLER"                help:"system that installs Kyma on new runtimes: provisioner, or reconciler, which needs APP_RECONCILER_URL. Existing runtimes keep their installer"`
	VersionConfigNamespace string                    `env:"VERSION_CONFIG_NAMESPACE"      help:"namespace of the ConfigMap that sets Kyma versions for accounts, in the control plane"`
	VersionConfigName      string                    `env:"VERSION_CONFIG_NAME"           help:"name of the ConfigMap that sets Kyma versions for accounts; its keys are SA_ followed by a subaccount ID, or GA_ followed by a global account ID; empty for none"`
	KubeconfigPath         string                    `env:"CONTROL_PLANE_KUBECONFIG_PATH" help:"kubeconfig for the control plane, the cluster that contains Kyma versions, plan configuration and overrides; empty for none"`
	Namespace              string                    `env:"CONTROL_PLANE_NAMESPACE"       help:"namespace of plan configuration and overrides in the control plane"`
	Calls                  int                       `env:"CONTROL_PLANE_CALLS"           help:"maximum number of concurrent calls to the control plane, per replica"`
	OnDemandVersion        bool                      `env:"ENABLE_ON_DEMAND_VERSION"      help:"allow orders to choose the version of Kyma with the kymaVersion parameter"`
}

// OIDC configures how users log in to runtimes. If no issuer is set, the Provisioner chooses the issuer of new clusters.
type OIDC struct {
	IssuerURL string `env:"ISSUER_URL" help:"URL of the OIDC issuer in users' kubeconfigs, which new clusters also trust by default"`
	ClientID  string `env:"CLIENT_ID"  help:"client ID in kubeconfigs for users"`
}

// Kubeconfigs configures the endpoint that issues kubeconfigs to users of runtimes, GET /kubeconfig/{instance_id}.
type Kubeconfigs struct {
	LoginRequired bool    `env:"LOGIN_REQUIRED" help:"require a login with the viewer role for the kubeconfigs for users of runtimes, which contain no credentials"`
	RateLimit     float64 `env:"RATE_LIMIT"     help:"requests per second for user kubeconfigs that a replica accepts from each address; 0 means no limit"`
}

// Events configures the events that operators and other systems can follow.
type Events struct {
	Retention time.Duration `env:"RETENTION" help:"how long events are kept. Consumers that are disconnected for longer miss events"`
	Streams   int           `env:"STREAMS"   help:"maximum number of streams of events that each replica serves"`
}

// Webhooks configures the delivery of events to webhooks.
type Webhooks struct {
	Networks []string `env:"NETWORKS" help:"networks in which webhooks may have addresses that are not public, as CIDR,…, for example 10.0.0.0/8; only these addresses may use http. Without it, the broker connects only to public addresses"`
}

// kubeconfigBurst is the number of kubeconfig requests that a client address may send at once.
const kubeconfigBurst = 50

// limiter returns a rate limiter for kubeconfig requests. It has a separate limit for each client address.
func (k Kubeconfigs) limiter() (*auth.Limiter, error) {
	limit, err := auth.NewLimiter(k.RateLimit, kubeconfigBurst, clock.RealClock{})
	if err != nil {
		return nil, fmt.Errorf("APP_KUBECONFIG_RATE_LIMIT: %w", err)
	}

	return limit, nil
}

// DefaultConfig returns the defaults. They suit a single machine; only the keys of the database are missing. The
// Provisioner is expected at its default address.
func DefaultConfig() Config {
	shared := replica.DefaultConfig("broker", storage.DriverSQLite)
	shared.Address, shared.StatusAddress = "127.0.0.1:8080", "127.0.0.1:8071"

	return Config{
		Config: shared,
		Provisioner: Provisioner{
			URL: "http://127.0.0.1:3000/graphql", Timeout: 120 * time.Second,
			RuntimeTimeout: 6 * time.Hour, PollLimit: 50, Calls: 32,
		},
		CIS:                  cis.DefaultConfig(),
		EDP:                  edp.DefaultConfig(),
		IAS:                  ias.DefaultConfig(),
		AvS:                  avs.DefaultConfig(),
		Notification:         notification.DefaultConfig(),
		LifecycleManager:     lifecyclemanager.DefaultConfig(),
		Reconciler:           reconciler.DefaultConfig(),
		DefaultRequestRegion: "cf-eu10",
		KubernetesVersion:    "1.35.4",
		Catalog:              Catalog{OnlySingleTrialPerGA: true},
		TargetSecrets:        map[string]string{"aws": "aws", "azure": "azure", "gcp": "gcp", "openstack": "openstack"},
		AccountPool:          AccountPool{BindingKind: string(gardenclient.CredentialsBinding), Cleanup: cleanuphook.DefaultConfig()},
		Gardener:             Gardener{Calls: 32},
		OwnClusterTimeout:    10 * time.Minute,
		ReconcileInterval:    time.Hour,
		BTPCheckInterval:     6 * time.Hour,
		BindingLimit:         10,
		UnbindWait:           3 * time.Second,
		PublicURL:            "http://127.0.0.1:8080",
		Kubeconfigs:          Kubeconfigs{RateLimit: 10},
		Console:              session.DefaultConfig(),
		Events:               Events{Retention: 7 * 24 * time.Hour, Streams: 32},
		Kyma: Kyma{
			Installer: environment.InstallerProvisioner, VersionConfigNamespace: "kcp-system", VersionConfigName: "kyma-versions", Namespace: "kcp-system", Calls: 10,
		},
		ExpirationPeriods: map[string]time.Duration{"trial": 14 * 24 * time.Hour, "free": 30 * 24 * time.Hour},
		JobLimits:         defaultJobLimits(),
	}
}
