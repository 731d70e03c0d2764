package update

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/kymachange"
	"github.com/environment-broker/environment-broker/process/kymaresource"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
	"github.com/environment-broker/environment-broker/process/reconciling"
)

// Operation is the input and the result of the steps.
type Operation = process.Operation[environment.Data]

// Step is a step of the process. Its data is environment.Data.
type Step = process.Step[environment.Data]

// Provisioner changes runtimes.
type Provisioner interface {
	UpgradeRuntime(ctx context.Context, caller provisionerclient.Caller, instance, changed environment.Instance) (provisionerclient.Operation, error)
	UpgradeKyma(ctx context.Context, caller provisionerclient.Caller, changed environment.Instance) (provisionerclient.Operation, error)
}

// Instances reads instances and records updates.
type Instances interface {
	Find(ctx context.Context, id string) (environment.Instance, error)
	// Update returns the effect that applies the change to the instance's row.
	Update(instance environment.Instance, change environment.Update) process.Effect
}

// RuntimeAccess calls an instance's runtime. Probe returns an error if the runtime does not respond. ApplyServiceManager writes the
// Service Manager credentials and is idempotent.
type RuntimeAccess interface {
	Probe(ctx context.Context, instance environment.Instance) error
	ApplyServiceManager(ctx context.Context, instance environment.Instance, credentials environment.ServiceManager) error
}

// Options are the dependencies of the process.
type Options struct {
	Provisioner Provisioner
	Instances   Instances
	Kyma        kymachange.Kyma
	Access      RuntimeAccess
	Waiter      provisionerwait.Waiter
	// KymaResource has the dependencies of the Lifecycle Manager steps. Process sets its Instance field.
	KymaResource kymaresource.Options
	Reconciler   reconciling.Reconciler
	// OwnClusterLimit is how long the process tries to reach a tenant's own cluster with a new kubeconfig.
	OwnClusterLimit time.Duration
	// Limit is the maximum duration of an operation.
	Limit time.Duration
}

// ownCluster reports whether the cluster belongs to the tenant. The Provisioner does not manage such a cluster.
func ownCluster(operation Operation) bool {
	return operation.Data.Update != nil && operation.Data.Update.Cluster.Own != nil
}

// managed reports whether the Provisioner created the runtime.
func managed(operation Operation) bool { return !ownCluster(operation) }

// changesModules reports whether the update changes the modules of a runtime with Kyma.
func changesModules(operation Operation) bool {
	before, after := operation.Data.Instance.Request.Cluster.Kyma, operation.Data.Update.Cluster.Kyma

	return before != nil && after != nil && !slices.Equal(before.Modules, after.Modules)
}

// changesKymaResource reports whether the runtime's Kyma resource must change. The resource contains the modules, and labels with
// the plan and the account.
func changesKymaResource(operation Operation) bool {
	instance, update := operation.Data.Instance, operation.Data.Update

	return instance.InLifecycleManager() &&
		(changesModules(operation) || update.PlanID != instance.PlanID || update.GlobalAccountID != instance.GlobalAccountID)
}

// changesCredentials reports whether the update has new Service Manager credentials.
func changesCredentials(operation Operation) bool {
	before, after := operation.Data.Instance.Request.Cluster.ServiceManager, operation.Data.Update.Cluster.ServiceManager

	return after != nil && (before == nil || *before != *after)
}

// ordersKyma reports whether the update changes the modules of a runtime whose Kyma the Provisioner installs.
func ordersKyma(operation Operation) bool {
	return changesModules(operation) && operation.Data.Instance.Request.Cluster.Kyma.InstalledBy(environment.InstallerProvisioner)
}

// reconcilesKyma reports whether the update changes the Kyma configuration in the Reconciler, which includes the Service Manager
// credentials.
func reconcilesKyma(operation Operation) bool {
	return (changesModules(operation) || changesCredentials(operation)) && operation.Data.Update.Cluster.Kyma != nil &&
		reconciling.Installs().Holds(operation)
}

// changesShoot reports whether the Provisioner must change the cluster. It is false if only the modules or the Service Manager
// credentials change.
func changesShoot(operation Operation) bool {
	before, after := operation.Data.Instance.Request.Cluster, operation.Data.Update.Cluster
	before.Kyma, after.Kyma = nil, nil
	before.ServiceManager, after.ServiceManager = nil, nil

	return managed(operation) && (!changesModules(operation) && !changesCredentials(operation) || !reflect.DeepEqual(before, after))
}

// Process returns the process that changes a runtime. For a tenant's own cluster, the process only checks that the
// cluster responds to the new kubeconfig.
func Process(options Options) process.Process[environment.Data] {
	retry := process.DefaultRetry()
	shootChanged := process.Condition[environment.Data]{
		Text: "not own_cluster, the update changes more than the modules or the BTP credentials", Holds: changesShoot,
	}
	return process.Process[environment.Data]{
		Kind:  environment.KindUpdate,
		Limit: options.Limit,
		Stages: slices.Concat([]process.Stage[environment.Data]{
			{Name: "cluster", Retry: retry, Steps: []process.Task[environment.Data]{
				{
					Step:  start(options.Instances),
					Notes: process.Notes{Does: "Reads the instance again, because it may have changed since the request."},
				},
				{
					Step: upgradeShoot{provisioner: options.Provisioner, waiter: options.Waiter}, When: shootChanged,
					Notes: process.Notes{Does: "Orders the change of the cluster.", System: "Provisioner"},
				},
			}},
			{Name: "check", Retry: retry, RetryFrom: "cluster", Steps: []process.Task[environment.Data]{
				{
					Step: checkRuntime(options.Waiter), When: shootChanged,
					Notes: process.Notes{
						Does: "Waits until the Provisioner has changed the cluster.", System: "Provisioner", Limit: options.Waiter.Limit,
					},
				},
				{
					Step: checkOwnCluster(options.Access, options.OwnClusterLimit),
					When: process.Condition[environment.Data]{Text: "own_cluster", Holds: ownCluster},
					Notes: process.Notes{
						Does: "Checks that the cluster responds to the kubeconfig in the update.", System: "runtime", Limit: options.OwnClusterLimit,
					},
				},
			}},
		}, kymaStages(options), []process.Stage[environment.Data]{
			{Name: "record", Retry: retry, Steps: []process.Task[environment.Data]{{
				Step: recordUpdate(options.Instances), Notes: process.Notes{Does: "Stores the change in the instance."},
			}}},
		}),
	}
}

// kymaStages returns the stages that change Kyma and the Service Manager credentials.
func kymaStages(options Options) []process.Stage[environment.Data] {
	retry := process.DefaultRetry()
	kymaChanged := process.Condition[environment.Data]{
		Text:  "the modules change and Lifecycle Manager does not install Kyma, or the BTP credentials change and the Reconciler installs Kyma",
		Holds: func(operation Operation) bool { return ordersKyma(operation) || reconcilesKyma(operation) },
	}
	kymaOrdered := process.Condition[environment.Data]{Text: "the modules change, the Provisioner installs Kyma", Holds: ordersKyma}
	kymaReconciled := process.Condition[environment.Data]{
		Text: "the modules or the BTP credentials change, the Reconciler installs Kyma", Holds: reconcilesKyma,
	}
	resourceChanged := process.Condition[environment.Data]{
		Text: "the modules, the plan or the account change, Lifecycle Manager installs Kyma", Holds: changesKymaResource,
	}
	credentialsChanged := process.Condition[environment.Data]{Text: "the BTP credentials in the context change", Holds: changesCredentials}
	runtimeChanged := process.Condition[environment.Data]{
		Text: "the BTP credentials change, or the modules change and Lifecycle Manager does not install Kyma",
		Holds: func(operation Operation) bool {
			return changesCredentials(operation) || kymaChanged.Holds(operation)
		},
	}
	kyma := options.KymaResource
	kyma.Instance = func(_ context.Context, operation Operation) (environment.Instance, error) {
		return operation.Data.Changed()
	}

	return []process.Stage[environment.Data]{
		{Name: "btp-operator", Retry: retry, RetryFrom: "cluster", Steps: []process.Task[environment.Data]{
			{
				Step: initKymaVersion(options.Kyma), When: kymaChanged,
				Notes: process.Notes{Does: "Adds the version and the components of Kyma to the change.", System: kymaresource.System},
			},
			{
				Step: getKubeconfig(options.Access), When: runtimeChanged,
				Notes: process.Notes{Does: "Checks that the runtime responds to its kubeconfig.", System: "runtime"},
			},
			{
				Step: injectCredentials(options.Access), When: credentialsChanged,
				Notes: process.Notes{
					Does: "Writes the changed Service Manager credentials to the runtime.", System: "runtime",
					Creates: "the Secret kyma-system/sap-btp-manager in the runtime",
				},
			},
			{Step: kymachange.BTPOperatorOverrides(), When: kymachange.WithCredentials(kymaChanged), Notes: kymachange.CredentialsNotes()},
			{Step: kymachange.Overrides(options.Kyma), When: kymaChanged, Notes: kymachange.OverridesNotes()},
			{Step: kymachange.BusolaMigratorOverrides(), When: kymaChanged, Notes: kymachange.BusolaNotes()},
			{
				Step: upgradeKyma(options.Provisioner, options.Waiter), When: kymaOrdered,
				Notes: process.Notes{Does: "Orders the installation of the selected modules and the removal of all others.", System: "Provisioner"},
			},
			{
				Step: kymachange.ApplyConfiguration("Apply_Reconciler_Configuration", options.Reconciler), When: kymaReconciled,
				Notes: kymachange.ConfigurationNotes(),
			},
			{Step: kymaresource.ApplyKyma(kyma), When: resourceChanged, Notes: kymaresource.ApplyNotes()},
		}},
		{Name: "btp-operator-check", Retry: retry, RetryFrom: "cluster", Steps: []process.Task[environment.Data]{
			{
				Step: checkKyma(options.Waiter), When: kymaOrdered,
				Notes: process.Notes{
					Does: "Waits until the Provisioner has changed Kyma.", System: "Provisioner", Limit: options.Waiter.Limit,
				},
			},
			{
				Step: checkReconcilerState(options.Reconciler), When: kymaReconciled,
				Notes: process.Notes{
					Does: "Waits until the Reconciler has changed Kyma.", System: reconciling.System, Limit: options.Reconciler.Limit,
				},
			},
			{Step: kymaresource.CheckKyma(kyma), When: resourceChanged, Notes: kyma.CheckNotes()},
		}},
	}
}
