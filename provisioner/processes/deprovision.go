package processes

import (
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/provisioner/operation"
)

const (
	// releaseTimeout limits the attempts to reach the service brokers in a cluster.
	releaseTimeout = 2 * time.Minute
	// uninstallTimeout limits the wait until Kyma has released what it holds outside the cluster.
	uninstallTimeout = 5 * time.Minute
)

// deprovision removes a cluster without Kyma.
func (o Options) deprovision() definition {
	return definition{Kind: operation.KindDeprovisionNoInstall, Limit: o.Limit, Stages: o.removal()}
}

// deprovisionWithKyma removes a cluster with Kyma. What cannot be cleaned up in time is deleted with the cluster.
func (o Options) deprovisionWithKyma() definition {
	return definition{Kind: operation.KindDeprovision, Limit: o.Limit, Stages: append([]stage{
		one("CleanupCluster", "Clean_Up_Cluster", o.cleanUp),
		one("ReleasingServiceBrokers", "Release_Service_Brokers", o.releaseBrokers),
		one("TriggerKymaUninstall", "Uninstall_Kyma", o.uninstall),
	}, o.removal()...)}
}

// removal returns the stages that both removals have. The deletion is recorded before the last check, because a cluster may still
// appear after it: see verifyGone.
func (o Options) removal() []stage {
	return slices.Concat([]stage{
		one("DeprovisionCluster", "Delete_Shoot", o.deleteShoot),
		one("WaitForClusterDeletion", "Wait_For_Cluster_Deletion", o.waitForDeletion),
	}, o.Gone, []stage{
		one("RecordingDeletion", "Mark_Deleted", o.markDeleted),
		one("VerifyClusterDeletion", "Verify_Gone", o.verifyGone),
	})
}
