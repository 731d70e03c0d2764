package service

import (
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/broker/poolcleanup"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/clients/cleanuphook"
	"github.com/environment-broker/environment-broker/internal/clients/gardenclient"
	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// AccountPool configures the assignment of cloud accounts to tenants. If RulesFile is empty, there is no pool, and
// APP_TARGET_SECRETS maps providers to accounts.
type AccountPool struct {
	RulesFile   string             `env:"RULES_FILE"     help:"file with the rules of the account pool; if empty, APP_TARGET_SECRETS names one account for each provider"`
	BindingKind string             `env:"BINDING_KIND"   help:"kind of the accounts in Gardener: CredentialsBinding, or SecretBinding for landscapes that have only those"`
	Cleanup     cleanuphook.Config `envPrefix:"CLEANUP_"`
}

// Gardener configures the connection to Gardener, which only the account pool uses, and the domain of clusters.
type Gardener struct {
	KubeconfigPath string `env:"KUBECONFIG_PATH" help:"path of the kubeconfig for Gardener, which the account pool needs; reloaded when the file changes"`
	Project        string `env:"PROJECT"         help:"name of the Gardener project with the accounts and the clusters"`
	ShootDomain    string `env:"SHOOT_DOMAIN"    help:"parent domain of the clusters' domains, such as kyma.example.com; external evaluations in AvS need it"`
	Calls          int    `env:"CALLS"           help:"maximum number of concurrent calls to Gardener, per replica"`
}

// enabled reports whether the pool is configured.
func (p AccountPool) enabled() bool { return p.RulesFile != "" }

// checkAccounts checks the settings of the account pool.
func (c Config) checkAccounts() error {
	if !c.AccountPool.enabled() {
		return nil
	}

	kind := gardenclient.Kind(c.AccountPool.BindingKind)

	return errors.Join(
		c.AccountPool.Cleanup.Check(),
		failure.Unless(c.Gardener.Project != "", "APP_GARDENER_PROJECT: the account pool needs the name of the Gardener project"),
		failure.Unless(c.Gardener.Calls > 0, "APP_GARDENER_CALLS: must be at least 1"),
		failure.Unless(kind == gardenclient.CredentialsBinding || kind == gardenclient.SecretBinding,
			"APP_ACCOUNT_POOL_BINDING_KIND: unknown kind %q: use %s or %s", kind, gardenclient.CredentialsBinding, gardenclient.SecretBinding),
	)
}

// accountPool assigns accounts according to the configured rules. cleaner cleans up dirty accounts.
type accountPool struct {
	accountpool.Instances

	cleaner *poolcleanup.Cleaner
}

// operatedPool combines the pool and its cleaner into an operator.AccountPool.
type operatedPool struct {
	accountpool.Pool
	*poolcleanup.Cleaner
}

// accounts returns the pool for the steps, or nil if no pool is configured.
func (p *accountPool) accounts() Accounts {
	if p == nil {
		return nil
	}

	return p
}

// operated returns the pool for the operator API, or nil if no pool is configured.
func (p *accountPool) operated() operator.AccountPool {
	if p == nil {
		return nil
	}

	return operatedPool{p.Pool, p.cleaner}
}

// connectCleanupHook connects the cleanup hook if it is configured.
func (s *Service) connectCleanupHook(connected *upstreams, config Config, stores stores, wake func()) error {
	if config.AccountPool.Cleanup.URL == "" {
		return nil
	}

	system, transport, err := s.connect(upstream.Options{
		Name: "cleanup_hook", Title: "the cleanup hook", Component: failure.ComponentCleanupHook, Calls: cleanupCalls,
	})
	if err != nil {
		return err
	}

	hook := cleanuphook.New(config.AccountPool.Cleanup, "garden-"+config.Gardener.Project, transport)
	connected.pool.cleaner.Hook = hook
	connected.add(system, s.recovery("the cleanup hook", system, hook.Probe, stores, wake))

	return nil
}

// cleanupCalls is the maximum number of concurrent calls to the cleanup hook. The background job makes one call at a time;
// operators can start further calls.
const cleanupCalls = 5

// connectAccountPool opens the account pool if one is configured, and checks its rules against the catalog. It always registers the
// metrics of the pool.
func (s *Service) connectAccountPool(connected *upstreams, config Config, stores stores, plans *catalog.Catalog, wake func()) error {
	reporter := AccountsReporter{Reports: stores.reports, Clock: clock.RealClock{}, Log: s.Log}
	metrics := poolcleanup.NewMetrics(stores.accounts, clock.RealClock{}, s.Log)
	s.Metrics().MustRegister(reporter, metrics)

	if !config.AccountPool.enabled() {
		return nil
	}

	rules, err := loadRules(config.AccountPool.RulesFile, plans)
	if err != nil {
		return fmt.Errorf("APP_ACCOUNT_POOL_RULES_FILE: %w", err)
	}

	system := upstream.New(upstream.Options{
		Name: "gardener", Title: "Gardener", Component: failure.ComponentGardenerClient,
		Calls: config.Gardener.Calls, Variable: "APP_GARDENER_CALLS",
	})

	options := gardenclient.Options{
		Namespace: "garden-" + config.Gardener.Project, Kind: gardenclient.Kind(config.AccountPool.BindingKind), System: system,
	}

	var garden *gardenclient.Client

	switch {
	case s.garden != nil:
		garden, err = gardenclient.New(s.garden, options)
	case config.Gardener.KubeconfigPath == "":
		err = errors.New("the account pool needs a kubeconfig for Gardener")
	default:
		garden, err = gardenclient.Follow(config.Gardener.KubeconfigPath, s.Access.Files, options)
	}

	if err != nil {
		return fmt.Errorf("APP_GARDENER_KUBECONFIG_PATH: %w", err)
	}

	pool := accountpool.Pool{Garden: garden, Claims: stores.accounts}
	reporter.Pool = pool
	cleaner := &poolcleanup.Cleaner{
		Pool: pool, Records: stores.accounts, Metrics: metrics, Clock: clock.RealClock{}, Log: s.Log,
		Recorder: audit.NewRecorder(stores.entries, s.DB, clock.RealClock{}, s.Log),
	}
	connected.pool = &accountPool{accountpool.Instances{Rules: rules, Pool: pool}, cleaner}
	connected.add(system,
		lifecycle.Periodic{
			Name: "account pool sweep", Every: sweepEvery, Clock: clock.RealClock{}, Log: s.Log, Work: pool.Sweep,
		}.Part(),
		reporter.Part(),
		s.recovery("Gardener", system, garden.Probe, stores, wake),
	)

	return s.connectCleanupHook(connected, config, stores, wake)
}

// loadRules reads the rules, and compares them with the catalog immediately and at each reload of the catalog. The rules
// themselves are not reloaded.
func loadRules(path string, plans *catalog.Catalog) (accountpool.Rules, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return accountpool.Rules{}, fmt.Errorf("reading the rules: %w", err)
	}

	rules, err := accountpool.ParseRules(content)
	if err != nil {
		return accountpool.Rules{}, err
	}

	return rules, plans.Require(func(plans []*catalog.Plan) error {
		var known []accountpool.Plan
		for _, plan := range plans {
			known = append(known, accountpool.Plan{Name: plan.Name, Regions: plan.Regions(), Offered: plan.Offered()})
		}

		if err := rules.Check(known); err != nil {
			return fmt.Errorf("the account pool's rules, which are read at startup: %w", err)
		}

		return nil
	})
}

// sweepEvery is the interval at which the broker completes interrupted releases of accounts.
const sweepEvery = 5 * time.Minute
