package deprovisioning

import (
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/kymaresource"
)

// stage returns a stage that consists of one step and has its name.
func stage(task process.Task[environment.Data]) process.Stage[environment.Data] {
	return process.Stage[environment.Data]{
		Name: task.Step.Name(), Retry: process.DefaultRetry(), Steps: []process.Task[environment.Data]{task},
	}
}

// hasProvider reports whether the Provisioner manages the cluster. It does not manage a tenant's own cluster.
func hasProvider(operation Operation) bool { return operation.Data.Instance.Provider != "" }

// registrationStages returns the stages that remove the instance from the systems that know it.
func registrationStages(options Options) []process.Stage[environment.Data] {
	return []process.Stage[environment.Data]{
		stage(process.Task[environment.Data]{
			Step: removeEvaluations{client: options.AvS, objects: options.Objects}, Skippable: true,
			When:  process.Condition[environment.Data]{Text: "monitored in AvS"},
			Notes: process.Notes{Does: "Removes the evaluations of the instance.", System: "AvS", Limit: cleanupWindow, Optional: true},
		}),
		stage(process.Task[environment.Data]{
			Step: deregisterEDP{client: options.EDP, objects: options.Objects}, Skippable: true,
			When: process.Condition[environment.Data]{Text: "registered in EDP"},
			Notes: process.Notes{
				Does:   "Removes the subaccount from the Event Data Platform if no other instance of the subaccount is left.",
				System: "EDP", Limit: cleanupWindow, Optional: true,
			},
		}),
		stage(process.Task[environment.Data]{
			Step: deregisterIAS{client: options.IAS, objects: options.Objects}, Skippable: true,
			When: process.Condition[environment.Data]{
				Text: "not own_cluster, APP_IAS_URL is set", Off: options.IAS == nil, Holds: hasProvider,
			},
			Notes: process.Notes{
				Does:   "Removes the service provider that Kyma Environment Broker registered for the instance.",
				System: "IAS", Limit: cleanupWindow, Optional: true,
			},
		}),
	}
}

// kymaStages returns the stages that remove the Kyma resource of the runtime from the control plane.
func kymaStages(options Options) []process.Stage[environment.Data] {
	kyma := kymaObject{client: options.LifecycleManager, objects: options.Objects, kind: environment.KindKymaResource}

	deletion := stage(process.Task[environment.Data]{
		Step: deleteKyma{kyma}, When: installedByManager(), Skippable: true,
		Notes: process.Notes{
			Does:   "Deletes the Kyma resource, so that Lifecycle Manager removes its modules.",
			System: kymaresource.System, Limit: cleanupWindow, Optional: true,
		},
	})
	check := stage(process.Task[environment.Data]{
		Step: checkKymaDeleted{kyma}, When: installedByManager(), Skippable: true,
		Notes: process.Notes{
			Does: "Waits until Lifecycle Manager has removed the Kyma resource.", System: kymaresource.System, Limit: cleanupWindow, Optional: true,
		},
	})
	check.RetryFrom = deletion.Name

	return []process.Stage[environment.Data]{deletion, check}
}

// installedByManager returns the condition of steps that remove objects in the control plane. The steps check it in the database.
func installedByManager() process.Condition[environment.Data] {
	return process.Condition[environment.Data]{Text: "Lifecycle Manager installed Kyma"}
}

// runtimeStages returns the stages that remove the runtime and then the Secret with its kubeconfig. Operators who remove the runtime
// manually skip the first two.
func runtimeStages(options Options) []process.Stage[environment.Data] {
	kubeconfig := kymaObject{client: options.LifecycleManager, objects: options.Objects, kind: environment.KindKubeconfig}

	remove := stage(process.Task[environment.Data]{
		Step: removeRuntime{
			provisioner: options.Provisioner, instances: options.Instances, waiter: options.Waiter, kind: options.Kind,
			leftOver: options.LeftOver,
		},
		Skippable: true, Notes: process.Notes{Does: "Requests the removal of the runtime.", System: "Provisioner"},
	})
	check := stage(process.Task[environment.Data]{
		Step: checkRuntimeRemoval(options.Waiter, options.LeftOver), Skippable: true,
		Notes: process.Notes{
			Does: "Waits until the Provisioner has removed the runtime.", System: "Provisioner", Limit: options.Waiter.Limit,
		},
	})
	check.RetryFrom = remove.Name

	secret := stage(process.Task[environment.Data]{
		Step: deleteKubeconfig{kubeconfig}, When: installedByManager(), Skippable: true,
		Notes: process.Notes{
			Does: "Deletes the Secret with the kubeconfig of the runtime.", System: kymaresource.System, Limit: cleanupWindow, Optional: true,
		},
	})

	return []process.Stage[environment.Data]{remove, check, secret}
}

// unlessUsedStages returns the stages of a removal for a cleanup: their steps do nothing if an instance uses the runtime.
func unlessUsedStages(stages []process.Stage[environment.Data], options Options) []process.Stage[environment.Data] {
	for _, stage := range stages {
		stage.Steps[0].Step = unlessUsed{Step: stage.Steps[0].Step, instances: options.Instances, limit: options.Limit}
	}

	return stages
}
