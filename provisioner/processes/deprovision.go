package processes

import (
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

const (
	// releaseTimeout limits the retries of releaseBrokers in a cluster that does not respond.
	releaseTimeout = 2 * time.Minute
	// forgetTimeout limits how long a removal waits for the bundle provisioner after the cluster has been deleted.
	forgetTimeout = 5 * time.Minute
	// uninstallTimeout limits the wait until Kyma has released its resources outside the cluster.
	uninstallTimeout = 5 * time.Minute
)

// deprovision removes a cluster without Kyma.
func (o Options) deprovision() definition {
	return definition{Kind: operation.KindDeprovisionNoInstall, Limit: o.Limit, Stages: o.removal()}
}

// deprovisionWithKyma removes a cluster with Kyma. It first cleans up resources outside the cluster, each kind within a time
// limit; objects that remain in the cluster are deleted with it.
func (o Options) deprovisionWithKyma() definition {
	return definition{Kind: operation.KindDeprovision, Limit: o.Limit, Stages: append([]stage{
		onCluster(one("CleanupCluster", "Clean_Up_Cluster", o.cleanUp, process.Notes{
			Does:   "Deletes the service instances of the configured service brokers.",
			System: systemRuntime, Limit: o.Timeouts.Cleanup, Optional: true,
		})),
		onCluster(one("ReleasingServiceBrokers", "Release_Service_Brokers", o.releaseBrokers, process.Notes{
			Does: "Removes the finalizers of the service brokers.", System: systemRuntime, Limit: releaseTimeout, Optional: true,
		})),
		onCluster(one("TriggerKymaUninstall", "Uninstall_Kyma", o.uninstall, process.Notes{
			Does:   "Uninstalls Kyma, whose components then release resources outside the cluster.",
			System: systemRuntime + " or " + systemBundles, Limit: uninstallTimeout, Optional: true,
		})),
	}, o.removal()...)}
}

// onCluster returns the stage with the text of the condition that its step checks with reachable.
func onCluster(stage stage) stage {
	stage.Steps[0].When.Text = "the cluster was created, and is neither hibernated nor being deleted"

	return stage
}

// removal returns the stages that both kinds of removal share. The deletion is recorded before the last check of the Shoot. From
// then on, an order can reuse the name of the Shoot. A frozen replica may still create the Shoot later; verifyGone and the
// background job service.Orphans delete such a Shoot. When an operator retries an operation that failed while it waited for the
// deletion, the new operation requests the deletion again.
func (o Options) removal() []stage {
	deleting := one("DeprovisionCluster", "Delete_Shoot", o.deleteShoot, process.Notes{
		Does: "Requests the deletion of the Shoot.", System: systemGardener,
	})
	wait := one("WaitForClusterDeletion", "Wait_For_Cluster_Deletion", o.waitForDeletion, process.Notes{
		Does: "Waits until Gardener has deleted the cluster.", System: systemGardener, Limit: o.Timeouts.Deletion,
	})
	wait.RetryFrom = deleting.Name

	return slices.Concat([]stage{deleting, wait}, o.forgetting(), o.Gone, []stage{
		one("RecordingDeletion", "Mark_Deleted", o.markDeleted, process.Notes{
			Does: "Records the deletion, after which a new runtime can have the name of the Shoot.",
		}),
		one("VerifyClusterDeletion", "Verify_Gone", o.verifyGone, process.Notes{
			Does:   "Deletes the objects of the Shoot, and a Shoot that a frozen replica has created late.",
			System: systemGardener, Limit: o.Timeouts.Deletion,
		}),
	})
}
