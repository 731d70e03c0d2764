package provisioning

import (
	"context"
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

// Provisioner orders runtimes.
type Provisioner interface {
	// OrderRuntime orders the runtime of the instance. If it was ordered before, OrderRuntime returns the operation of that order.
	// targetSecret is the name of the cloud credentials in Gardener. earlierSecrets are the names in earlier attempts, one of which
	// the Provisioner may have accepted.
	OrderRuntime(ctx context.Context, caller provisionerclient.Caller, instance environment.Instance, targetSecret string,
		earlierSecrets ...string) (provisionerclient.Operation, error)
}

// Instances reads instances and records their runtimes.
type Instances interface {
	Find(ctx context.Context, id string) (environment.Instance, error)
	// SetDashboardURL records address, the URL of the console, as the dashboard of the instance. It changes nothing if the
	// operation has lost its lease.
	SetDashboardURL(ctx context.Context, by process.Record, instance environment.Instance, address string) error
	// SetRuntime records the ID of the instance's runtime. It changes nothing if the operation has lost its lease.
	SetRuntime(ctx context.Context, by process.Record, instance environment.Instance, runtimeID string) error
	// Resume returns the effect that records that a suspended instance has a runtime again.
	Resume(instance environment.Instance) process.Effect
}

// Kyma determines the Kyma configuration for an instance's runtime.
type Kyma interface {
	// Complete returns the instance's Kyma configuration with the installation and the version filled in. It keeps a version that
	// is already set. If the instance has no Kyma, it returns nil.
	Complete(ctx context.Context, instance environment.Instance) (*environment.Kyma, error)
	// Overrides returns the instance's completed Kyma configuration with the values that operators have set.
	Overrides(ctx context.Context, instance environment.Instance) (*environment.Kyma, error)
}

// Options are the dependencies of the process.
type Options struct {
	Provisioner Provisioner
	Instances   Instances
	Accounts    Accounts
	Kyma        Kyma
	Access      RuntimeAccess
	Waiter      provisionerwait.Waiter
	// OwnClusterLimit is how long the process tries to reach a tenant's own cluster.
	OwnClusterLimit time.Duration
	// EDP is nil if the Event Data Platform is turned off. EDPRequired makes an operation fail if the registration fails.
	EDP         EDP
	EDPRequired bool
	Objects     Objects
	Monitoring  Monitoring
	// Installer names the system that installs Kyma on new runtimes.
	Installer  environment.KymaInstaller
	Reconciler reconciling.Reconciler
	// Consoles is nil if instances keep the configured dashboard. Kind returns the kind of the Provisioner. Kyma Provisioner does
	// not report consoles, so the process does not ask it for one.
	Consoles Consoles
	Kind     func() provisionerclient.Kind
	Clusters Clusters
	// KymaResource has the dependencies of the Lifecycle Manager steps. Process sets its Instance field.
	KymaResource kymaresource.Options
	// Limit is the maximum duration of an operation.
	Limit time.Duration
}

// managed reports whether the Provisioner creates the runtime. A tenant's own cluster is not managed.
func managed(operation Operation) bool { return operation.Data.Instance.Request.Cluster.Own == nil }

// registrable reports whether the instance has a subaccount to register in EDP.
func registrable(operation Operation) bool {
	return operation.Data.Instance.InEDP()
}

// external reports whether the instance gets an external evaluation in AvS.
func external(operation Operation) bool {
	plan := operation.Data.Instance.PlanName

	return plan != "trial" && plan != "free"
}

// integratesBTP reports whether the order has Service Manager credentials.
func integratesBTP(operation Operation) bool {
	return operation.Data.Instance.Request.Cluster.ServiceManager != nil
}

// ordersKyma reports whether the order for the runtime contains Kyma.
func ordersKyma(operation Operation) bool {
	return operation.Data.Instance.Request.Cluster.Kyma.InstalledBy(environment.InstallerProvisioner)
}

// ordered reports whether the runtime was ordered. It stays false for a tenant's own cluster.
func ordered(operation Operation) bool { return operation.Data.Ordered }

// Condition decides whether a step runs.
type Condition = process.Condition[environment.Data]

const provisioner = "Provisioner"

const avsName = "AvS"

// Process returns the process that creates a runtime. For a tenant's own cluster, the process only checks that the cluster
// responds.
func Process(options Options) process.Process[environment.Data] {
	retry := process.DefaultRetry()
	notOwn := Condition{Text: "not own_cluster", Holds: managed}
	withKyma := Condition{Text: "the Provisioner installs Kyma", Holds: ordersKyma}
	monitoring, off := options.Monitoring, options.Monitoring.AvS == nil

	return process.Process[environment.Data]{
		Kind:      environment.KindProvision,
		Limit:     options.Limit,
		Succeeded: textReady,
		Stages: append([]process.Stage[environment.Data]{
			{Name: "start", Retry: retry, Steps: []process.Task[environment.Data]{{
				Step:  start(options.Instances),
				Notes: process.Notes{Does: "Reads the instance again, because it may have changed since the request."},
			}}},
			{Name: "create_runtime", Retry: retry, Steps: []process.Task[environment.Data]{
				{
					Step: initialization(options.Kyma, options.Installer), When: notOwn,
					Notes: process.Notes{Does: "Chooses the version, the installer and the components of Kyma.", System: kymaresource.System},
				},
				{
					Step: resolveTargetSecret(options.Accounts), When: notOwn,
					Notes: process.Notes{Does: "Chooses the Gardener credentials for the cluster, from the account pool if there is one."},
				},
				{
					Step:      createEvaluation{monitoring: monitoring, instances: options.Instances, objects: options.Objects},
					When:      Condition{Text: "APP_AVS_API_ENDPOINT is set, APP_AVS_INTERNAL_TESTER_DISABLED is not", Off: off || !monitoring.Internal},
					Skippable: true,
					Notes: process.Notes{
						Does: "Creates the internal evaluation of the instance.", System: avsName, Creates: "the internal evaluation", Limit: internalWindow,
					},
				},
				{
					Step: registerEDP{client: options.EDP, objects: options.Objects, required: options.EDPRequired},
					When: Condition{
						Text: "not own_cluster, the instance has a subaccount, APP_EDP_ADMIN_URL is set", Holds: registrable, Off: options.EDP == nil,
					},
					Skippable: true,
					Notes: process.Notes{
						Does: "Registers the subaccount in the Event Data Platform.", System: "EDP",
						Creates: "the data tenant of the subaccount, with its metadata", Limit: edpWindow, Optional: !options.EDPRequired,
					},
				},
				{Step: overrides(options.Kyma), When: withKyma, Notes: kymachange.OverridesNotes()},
				{Step: btpOperatorOverrides(), Notes: kymachange.CredentialsNotes(), When: Condition{
					Text:  withKyma.Text + ", the context has sm_operator_credentials",
					Holds: func(operation Operation) bool { return ordersKyma(operation) && integratesBTP(operation) },
				}},
				{Step: busolaMigratorOverrides(), When: withKyma, Notes: kymachange.BusolaNotes()},
				{
					Step: createRuntime{provisioner: options.Provisioner, instances: options.Instances}, When: notOwn,
					Notes: process.Notes{Does: "Orders the runtime.", System: provisioner, Creates: "the runtime and its cluster"},
				},
			}},
			{Name: "check_runtime", Retry: retry, RetryFrom: "start", Steps: []process.Task[environment.Data]{{
				Step: checkRuntime{waiter: options.Waiter, consoles: options.Consoles, kind: options.Kind, instances: options.Instances},
				When: Condition{Text: "the broker ordered the runtime (not own_cluster)", Holds: ordered},
				Notes: process.Notes{
					Does: "Waits until the Provisioner has created the runtime.", System: provisioner, Limit: options.Waiter.Limit,
				},
			}}},
		}, onRuntime(options)...),
	}
}

// onRuntime returns the stages that run once the runtime is ready.
func onRuntime(options Options) []process.Stage[environment.Data] {
	retry := process.DefaultRetry()
	monitoring, off := options.Monitoring, options.Monitoring.AvS == nil
	kyma := options.KymaResource
	kyma.Instance = func(ctx context.Context, operation Operation) (environment.Instance, error) {
		return options.Instances.Find(ctx, operation.InstanceID)
	}

	return []process.Stage[environment.Data]{
		{Name: "get_kubeconfig", Retry: retry, Steps: []process.Task[environment.Data]{{
			Step: getKubeconfig(options.Access, options.OwnClusterLimit), Skippable: true,
			Notes: process.Notes{Does: "Checks that the runtime responds to its kubeconfig.", System: "runtime"},
		}}},
		{Name: "btp_operator", Retry: retry, Steps: []process.Task[environment.Data]{{
			Step: injectCredentials(options.Access), When: Condition{Text: "the context has sm_operator_credentials", Holds: integratesBTP},
			Skippable: true,
			Notes: process.Notes{
				Does: "Writes the Service Manager credentials to the runtime.", System: "runtime",
				Creates: "the Secret kyma-system/sap-btp-manager in the runtime",
			},
		}}},
		{Name: "create_kyma", Retry: retry, Steps: []process.Task[environment.Data]{{
			Step: createClusterConfiguration(options.Reconciler, options.Instances, options.Kyma),
			When: reconciling.Installs(),
			Notes: process.Notes{
				Does: "Registers the runtime in the Reconciler.", System: reconciling.System, Creates: "the cluster with its configuration of Kyma",
			},
		}}},
		{Name: "check_kyma", Retry: retry, RetryFrom: "create_kyma", Steps: []process.Task[environment.Data]{{
			Step: checkClusterConfiguration(options.Reconciler), When: reconciling.Installs(),
			Notes: process.Notes{
				Does: "Waits until the Reconciler has installed Kyma.", System: reconciling.System, Limit: options.Reconciler.Limit,
			},
		}}},
		{Name: "create_kyma_resource", Retry: retry, Steps: []process.Task[environment.Data]{
			{Step: kymaresource.SyncKubeconfig(kyma), When: kymaresource.Condition(), Skippable: true, Notes: kymaresource.SyncNotes()},
			{Step: kymaresource.ApplyKyma(kyma), When: kymaresource.Condition(), Skippable: true, Notes: kymaresource.ApplyNotes()},
		}},
		{Name: "check_kyma_resource", Retry: retry, RetryFrom: "create_kyma_resource", Steps: []process.Task[environment.Data]{{
			Step: kymaresource.CheckKyma(kyma), When: kymaresource.Condition(), Skippable: true,
			Notes: kyma.CheckNotes(),
		}}},
		{Name: "post_actions", Retry: retry, Steps: []process.Task[environment.Data]{
			{
				Step: createEvaluation{monitoring: monitoring, instances: options.Instances, objects: options.Objects, external: true},
				When: Condition{
					Text:  "not trial or free, APP_AVS_API_ENDPOINT is set, APP_AVS_EXTERNAL_TESTER_DISABLED is not",
					Holds: external, Off: off || !monitoring.External,
				},
				Skippable: true,
				Notes: process.Notes{
					Does: "Creates the external evaluation of the instance.", System: avsName, Creates: "the external evaluation",
					Limit: externalWindow, Optional: true,
				},
			},
			{
				Step: tagEvaluation{monitoring: monitoring, clusters: options.Clusters, objects: options.Objects},
				When: Condition{
					Text:  "not own_cluster, APP_AVS_API_ENDPOINT and APP_AVS_ADDITIONAL_TAGS_ENABLED are set",
					Holds: ordered, Off: off || !monitoring.Tags,
				},
				Skippable: true,
				Notes: process.Notes{
					Does: "Adds the name, the seed and the region of the cluster to the internal evaluation.", System: avsName,
					Creates: "tags of the internal evaluation", Limit: externalWindow, Optional: true,
				},
			},
		}},
	}
}

// textReady is the description of operations whose runtime is ready.
const textReady = "Runtime is ready"

// Resumption returns the process that recreates the runtime of a suspended instance. The new cluster has the name of the old one.
func Resumption(options Options) process.Process[environment.Data] {
	resumption := Process(options)
	resumption.Kind, resumption.Succeeded = environment.KindResume, "" // the last step describes the result
	resumption.Stages = append(resumption.Stages, process.Stage[environment.Data]{
		Name: "resumed", Retry: process.DefaultRetry(),
		Steps: []process.Task[environment.Data]{{
			Step: resumeInstance(options.Instances), Notes: process.Notes{Does: "Records that the instance has a runtime again."},
		}},
	})

	return resumption
}
