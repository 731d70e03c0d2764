package processes

import (
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// upgrade applies the operation's order to the Shoot. It records the order last. After a failed upgrade, the runtime therefore
// still has its earlier order, and the next upgrade starts from that order.
func (o Options) upgrade() definition {
	recording := one("RecordingConfiguration", "Record_Configuration", o.recordConfiguration)
	recording.Steps = append(recording.Steps, process.Steps(process.StepFunc("Tidy", o.tidy))...)

	return definition{
		Kind:  operation.KindUpgradeShoot,
		Limit: o.Limit,
		Stages: append(
			o.change("UpgradingShoot", o.changeShoot, "WaitingForShootUpgrade", "Wait_For_Shoot_Upgrade", o.Timeouts.Upgrade, nil),
			o.administrators(), recording,
		),
	}
}

// hibernate makes Gardener stop the machines and the control plane of a cluster.
func (o Options) hibernate() definition {
	return definition{
		Kind:  operation.KindHibernate,
		Limit: o.Limit,
		Stages: o.change("HibernatingShoot", o.setHibernation(true), "WaitForHibernation", "Wait_For_Hibernation", o.Timeouts.Hibernation,
			func(shoot *gardencorev1beta1.Shoot) string {
				if shoot.Status.IsHibernated {
					return ""
				}

				return "Gardener has not hibernated the cluster yet"
			}),
	}
}

// wakeUp makes Gardener start a hibernated cluster again. It also sets the administrators, because an upgrade may have replaced
// them during the hibernation.
func (o Options) wakeUp() definition {
	return definition{
		Kind:  operation.KindWakeUp,
		Limit: o.Limit,
		Stages: append(o.change("WakingShoot", o.setHibernation(false), "WaitForWakeUp", "Wait_For_Wake_Up", o.Timeouts.Hibernation,
			func(shoot *gardencorev1beta1.Shoot) string {
				if !shoot.Status.IsHibernated {
					return ""
				}

				return "Gardener has not woken up the cluster yet"
			}), o.administrators()),
	}
}

// upgradeKyma replaces the Kyma on a cluster with the Kyma in the operation's data. Upgrades and rollbacks differ only in their
// kind and in the order that package orders stores in the data.
func (o Options) upgradeKyma(kind string) definition {
	return definition{
		Kind:  kind,
		Limit: o.Limit,
		Stages: append(o.installation("StartingUpgrade", o.Timeouts.KymaUpgradeStart, o.Timeouts.KymaUpgrade),
			one("UpdatingUpgradeState", "Record_Configuration", o.recordConfiguration)),
	}
}

// upgradeRuntime upgrades the cluster and then Kyma, according to the operation's data. It records the order last, so that after a
// failure the next upgrade starts from the earlier order.
func (o Options) upgradeRuntime() definition {
	kyma := o.upgradeKyma(operation.KindUpgradeRuntime)
	record := &kyma.Stages[len(kyma.Stages)-1]
	record.Steps = append(record.Steps, process.Steps(process.StepFunc("Tidy", o.tidy))...)

	kyma.Stages = append(
		o.change("UpgradingShoot", o.changeShoot, "WaitingForShootUpgrade", "Wait_For_Shoot_Upgrade", o.Timeouts.Upgrade, nil), kyma.Stages...,
	)

	return kyma
}

// change returns three stages: the first writes the Shoot, the second waits until Gardener works on the change, and the third
// waits for the result. ordering and waiting are the names of the first and the third stage, write is the first stage's step, step is
// the name of the third stage's step, and limit and lacks are passed to waitForShoot. When an operator retries an operation that failed in a wait, the
// new operation writes the Shoot again, because Gardener may have given up on the earlier change.
func (o Options) change(ordering string, write process.RunFunc[operation.Data], waiting, step string, limit time.Duration,
	lacks func(*gardencorev1beta1.Shoot) string,
) []stage {
	refresh := one("WaitingForShootNewVersion", "Wait_For_Shoot_New_Version", o.waitForRefresh)
	wait := one(waiting, step, o.waitForShoot(limit, lacks))
	refresh.RetryFrom, wait.RetryFrom = ordering, ordering

	return []stage{one(ordering, "Change_Shoot", write), refresh, wait}
}
