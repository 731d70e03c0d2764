package service

import (
	"maps"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/adopt"
	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/cleanup"
	"github.com/environment-broker/environment-broker/broker/estimate"
	"github.com/environment-broker/environment-broker/broker/events"
	"github.com/environment-broker/environment-broker/broker/expiry"
	"github.com/environment-broker/environment-broker/broker/feed"
	"github.com/environment-broker/environment-broker/broker/jobs"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/broker/reconcile"
	"github.com/environment-broker/environment-broker/broker/upgrade"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/deprovisioning"
	"github.com/environment-broker/environment-broker/storage/reports"
)

// operated contains the parts of the service that the operator API uses.
type operated struct {
	stores    stores
	connected upstreams
	// provisioner is the circuit breaker of the Provisioner.
	provisioner     *upstream.System
	access          clusterclient.Access
	kubeconfigLimit *auth.Limiter
	plans           *catalog.Catalog
	platforms       func() auth.Platforms
	recorder        *audit.Recorder
	processes       []process.Process[environment.Data]
	engine          *process.Engine[environment.Data]
	follow          *feed.Feed
	wake            func()
	expirer         expiry.Expirer
	shoots          adopt.Shoots
	cleaner         cleanup.Cleaner
	jobs            jobs.Runner
	estimator       *estimate.Estimator
	comparer        *reconcile.Comparer
	streams         *events.Streams
}

// operatorOptions returns the dependencies of the operator API.
func (s *Service) operatorOptions(config Config, parts operated) operator.Options {
	stores, connected := parts.stores, parts.connected

	return operator.Options{
		DB: s.DB, Instances: stores.instances, Operations: stores.operations, Bindings: stores.bindings, Endpoints: stores.endpoints,
		Entries: stores.entries, Leftovers: stores.leftovers, Objects: stores.objects, Events: stores.events, EventLog: stores.eventLog,
		EventStreams: parts.streams, PublicURL: config.PublicURL, Webhooks: stores.webhooks, SendWebhook: connected.webhooks.Send,
		CheckWebhookURL: connected.webhooks.CheckURL,
		Recorder:        parts.recorder, Authorizer: s.Access.Authorizer, Platforms: parts.platforms,
		Kubeconfigs: parts.access, KubeconfigLogin: config.Kubeconfigs.LoginRequired, KubeconfigLimit: parts.kubeconfigLimit,
		OIDC:   environment.OIDC{IssuerURL: config.OIDC.IssuerURL, ClientID: config.OIDC.ClientID},
		Engine: parts.engine, Wake: parts.wake, Catalog: parts.plans,
		Expirer: parts.expirer, Cleaner: parts.cleaner, Jobs: parts.jobs, Upgrader: stores.upgrader(parts.plans, parts.wake),
		Shoots: parts.shoots, DefaultRegion: config.DefaultRequestRegion, Pool: connected.pool.operated(),
		Orchestrator: stores.orders(parts.plans, parts.recorder, parts.wake), Orchestrations: stores.orchestrations,
		Renewed:   slices.Sorted(maps.Keys(connected.holders)),
		Processes: process.Describe(parts.processes), UpgradeSteps: upgradeSteps(parts.processes),
		Systems:   append([]*upstream.System{parts.provisioner}, connected.systems...),
		Settings:  program.Settings(program.Prefix, DefaultConfig(), config),
		Estimator: parts.estimator, UserText: broker.OperationText, Differences: parts.comparer, Quotas: stores.quotas,
		RangesLeftOpen: func() bool { return parts.follow.Kind() == provisionerclient.KindKyma },
		Clock:          clock.RealClock{}, Log: s.Log, Metrics: s.HTTP, Tracing: s.Tracing,
	}
}

// upgradeSteps returns a function that lists the steps of an upgrade. It assumes that the upgrade is not a dry run.
func upgradeSteps(processes []process.Process[environment.Data]) func(kind string, instance environment.Instance) []string {
	return func(kind string, instance environment.Instance) []string {
		operation := process.NewOperation(process.Record{Kind: kind}, environment.Data{Instance: instance, Upgrade: &environment.Upgrade{}}, time.Time{})

		for _, each := range processes {
			if each.Kind == kind {
				return each.StepsFor(operation)
			}
		}

		return nil
	}
}

// comparer returns a Comparer, which compares the instances with the Provisioner's runtimes.
func (s *Service) comparer(stores stores, connected upstreams, recorder *audit.Recorder, provisioner *reconcile.Provisioner,
	access clusterclient.Access,
) *reconcile.Comparer {
	systems := reconcile.Systems{EDP: connected.edp != nil, Reconciler: connected.reconciler != nil}
	if connected.lifecycleManager != nil {
		systems.Kyma = connected.kyma
	}

	return &reconcile.Comparer{
		DB: s.DB, Instances: stores.instances, Operations: stores.operations, Bindings: stores.bindings, Endpoints: stores.endpoints,
		Leftovers: stores.leftovers, Objects: stores.objects, Systems: systems,
		Recorder: recorder, Provisioner: provisioner, Accounts: access, Clock: clock.RealClock{}, Log: s.Log,
	}
}

// report returns the lifecycle.Part that counts the differences at the given interval, and registers its metrics. An interval of
// 0 turns the counting off.
func (s *Service) report(comparer *reconcile.Comparer, reports *reports.Store, interval time.Duration) lifecycle.Part {
	reporter := reconcile.Reporter{Differences: comparer, Reports: reports, Interval: interval, Clock: clock.RealClock{}, Log: s.Log}
	s.Metrics().MustRegister(reporter)

	return reporter.Part()
}

// expirer returns an Expirer with the stores of the service.
func (s stores) expirer(periods expiry.Periods, recorder *audit.Recorder, wake func()) expiry.Expirer {
	return expiry.Expirer{
		DB: s.db, Instances: s.instances, Operations: s.operations, Periods: periods, Recorder: recorder, Wake: wake, Clock: clock.RealClock{},
	}
}

// shoots returns an adopt.Shoots, which turns Shoots into instances.
func (s stores) shoots(config Config, plans *catalog.Catalog, taker adopt.ShootTaker, recorder *audit.Recorder) adopt.Shoots {
	return adopt.Shoots{
		DB: s.db, Instances: s.instances, Operations: s.operations, Endpoints: s.endpoints, Recorder: recorder, Catalog: plans, Quotas: s.quotas,
		Taker: taker, Periods: config.ExpirationPeriods, Platform: auth.DefaultPlatform, Region: config.DefaultRequestRegion, Clock: clock.RealClock{},
	}
}

// upgrader returns an Upgrader, which accepts upgrades of single instances.
func (s stores) upgrader(plans *catalog.Catalog, wake func()) upgrade.Upgrader {
	return upgrade.Upgrader{
		DB: s.db, Instances: s.instances, Operations: s.operations, Catalog: plans, Wake: wake, Clock: clock.RealClock{},
	}
}

// conductor returns the Conductor of orchestrations, and registers its metrics.
func (s *Service) conductor(stores stores, plans *catalog.Catalog, wake func()) orchestration.Conductor {
	s.Metrics().MustRegister(orchestration.Metrics{Orchestrations: stores.orchestrations, Log: s.Log})

	return orchestration.Conductor{
		DB: stores.db, Orchestrations: stores.orchestrations, Planner: stores.planner(plans, wake), Clock: clock.RealClock{},
	}
}

// planner returns a Planner, which selects the targets of orchestrations.
func (s stores) planner(plans *catalog.Catalog, wake func()) orchestration.Planner {
	return orchestration.Planner{
		Upgrader: s.upgrader(plans, wake), StateOf: operator.StateOf, ShootWindows: s.orchestrations.ShootWindows,
		Upgraded: s.orchestrations.Upgraded,
	}
}

// orders returns orchestration.Orders, which accept orchestrations.
func (s stores) orders(plans *catalog.Catalog, recorder *audit.Recorder, wake func()) orchestration.Orders {
	return orchestration.Orders{
		DB: s.db, Orchestrations: s.orchestrations, Operations: s.operations, Planner: s.planner(plans, wake), Recorder: recorder, Wake: wake,
		Clock: clock.RealClock{},
	}
}

// cleaner returns a Cleaner, which cleans up leftovers, and registers its metrics.
func (s *Service) cleaner(stores stores, processes []process.Process[environment.Data], recorder *audit.Recorder, wake func()) cleanup.Cleaner {
	s.Metrics().MustRegister(cleanup.Metrics{Leftovers: stores.leftovers, Clock: clock.RealClock{}, Log: s.Log})

	at := slices.IndexFunc(processes, func(each process.Process[environment.Data]) bool { return each.Kind == environment.KindCleanup })

	return cleanup.Cleaner{
		DB: stores.db, Leftovers: stores.leftovers, Objects: stores.objects, Operations: stores.operations,
		Recorder: recorder, Wake: wake,
		Finished: func(steps []string) []string { return deprovisioning.FinishedStages(processes[at], steps) }, Clock: clock.RealClock{},
	}
}
