package update

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// Operation is the input and the result of the steps.
type Operation = process.Operation[environment.Data]

// Step is a step of the process.
type Step = process.Step[environment.Data]

// Provisioner changes runtimes.
type Provisioner interface {
	UpgradeRuntime(ctx context.Context, caller provisionerclient.Caller, instance, changed environment.Instance) (provisionerclient.Operation, error)
	UpgradeKyma(ctx context.Context, caller provisionerclient.Caller, changed environment.Instance) (provisionerclient.Operation, error)
}

// Kyma decides which Kyma the runtime of an instance gets.
type Kyma interface {
	// Complete returns the Kyma of the instance with its version, unless it is set, and its installation, or nil without Kyma.
	Complete(ctx context.Context, instance environment.Instance) (*environment.Kyma, error)
	// Overrides returns the completed Kyma of the instance with the values that operators have set.
	Overrides(ctx context.Context, instance environment.Instance) (*environment.Kyma, error)
}

// Instances reads instances and records updates.
type Instances interface {
	Find(ctx context.Context, id string) (environment.Instance, error)
	// Update returns the effect that applies the change to the instance's row.
	Update(instance environment.Instance, change environment.Update) process.Effect
}

// RuntimeAccess calls an instance's runtime. Probe checks whether it responds. ApplyServiceManager writes the credentials for Service
// Manager; a repeated call changes nothing.
type RuntimeAccess interface {
	Probe(ctx context.Context, instance environment.Instance) error
	ApplyServiceManager(ctx context.Context, instance environment.Instance, credentials environment.ServiceManager) error
}

// Options are the dependencies of the process.
type Options struct {
	Provisioner Provisioner
	Instances   Instances
	Kyma        Kyma
	Access      RuntimeAccess
	Waiter      provisionerwait.Waiter
	// Limit is the maximum duration of an operation.
	Limit time.Duration
}

// ownCluster reports whether the cluster belongs to the tenant. The Provisioner does not manage such a cluster.
func ownCluster(operation Operation) bool {
	return operation.Data.Update != nil && operation.Data.Update.Cluster.Own != nil
}

// managed reports whether the Provisioner created the runtime.
func managed(operation Operation) bool { return !ownCluster(operation) }

// updated returns the instance as it will be after the operation.
func updated(operation Operation) (environment.Instance, error) {
	changed, err := operation.Data.Update.Apply(operation.Data.Instance)
	if err != nil {
		return changed, failure.Wrap(failure.Internal, err, "the change of instance %s cannot be applied", operation.InstanceID)
	}

	return changed, nil
}

// changesKyma reports whether the update changes the modules of a runtime with Kyma.
func changesKyma(operation Operation) bool {
	before, after := operation.Data.Instance.Request.Cluster.Kyma, operation.Data.Update.Cluster.Kyma

	return before != nil && after != nil && !slices.Equal(before.Modules, after.Modules)
}

// changesCredentials reports whether the update brings other credentials for Service Manager.
func changesCredentials(operation Operation) bool {
	before, after := operation.Data.Instance.Request.Cluster.ServiceManager, operation.Data.Update.Cluster.ServiceManager

	return after != nil && (before == nil || *before != *after)
}

// changesShoot reports whether the update changes the cluster. An update that changes only the modules or the credentials for Service
// Manager does not.
func changesShoot(operation Operation) bool {
	before, after := operation.Data.Instance.Request.Cluster, operation.Data.Update.Cluster
	before.Kyma, after.Kyma = nil, nil
	before.ServiceManager, after.ServiceManager = nil, nil

	return managed(operation) && (!changesKyma(operation) && !changesCredentials(operation) || !reflect.DeepEqual(before, after))
}

// Process returns the process that changes a runtime. For a tenant's own cluster, the process only checks that the
// cluster responds to the new kubeconfig.
func Process(options Options) process.Process[environment.Data] {
	retry := process.DefaultRetry()
	shootChanged := process.Condition[environment.Data]{
		Text: "not own_cluster, not only the modules or BTP credentials change", Holds: changesShoot,
	}
	kymaChanged := process.Condition[environment.Data]{Text: "the modules change", Holds: changesKyma}

	return process.Process[environment.Data]{
		Kind:  environment.KindUpdate,
		Limit: options.Limit,
		Stages: []process.Stage[environment.Data]{
			{Name: "cluster", Retry: retry, Steps: []process.Task[environment.Data]{
				{Step: start(options.Instances)},
				{Step: upgradeShoot{provisioner: options.Provisioner, waiter: options.Waiter}, When: shootChanged, Notes: process.Notes{System: "Provisioner"}},
			}},
			{Name: "check", Retry: retry, RetryFrom: "cluster", Steps: []process.Task[environment.Data]{
				{Step: checkRuntime(options.Waiter), When: shootChanged, Notes: process.Notes{System: "Provisioner", Limit: options.Waiter.Limit}},
				{
					Step:  checkOwnCluster(options.Access),
					When:  process.Condition[environment.Data]{Text: "own_cluster", Holds: ownCluster},
					Notes: process.Notes{System: "runtime"},
				},
			}},
			{Name: "kyma", Retry: retry, RetryFrom: "cluster", Steps: []process.Task[environment.Data]{
				{Step: initKymaVersion(options.Kyma), When: kymaChanged},
				{Step: overrides(options.Kyma), When: kymaChanged, Notes: process.Notes{System: "control plane"}},
				{Step: btpOperatorOverrides(), When: kymaChanged},
				{Step: upgradeKyma(options.Provisioner, options.Waiter), When: kymaChanged, Notes: process.Notes{System: "Provisioner"}},
			}},
			{Name: "check_kyma", Retry: retry, RetryFrom: "cluster", Steps: []process.Task[environment.Data]{{
				Step: checkKyma(options.Waiter), When: kymaChanged,
				Notes: process.Notes{System: "Provisioner", Limit: options.Waiter.Limit},
			}}},
			{Name: "btp-operator", Retry: retry, Steps: []process.Task[environment.Data]{{
				Step:  injectCredentials(options.Access),
				When:  process.Condition[environment.Data]{Text: "the BTP credentials in the context change", Holds: changesCredentials},
				Notes: process.Notes{System: "runtime", Creates: "the Secret kyma-system/sap-btp-manager in the runtime"},
			}}},
			{Name: "record", Retry: retry, Steps: process.Steps[environment.Data](
				recordUpdate(options.Instances),
			)},
		},
	}
}
