package processes

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// upgrade applies the operation's order to the Shoot. It records the order last. After a failed upgrade, the runtime therefore
// still has its earlier order, and the next upgrade starts from that order.
func (o Options) upgrade() definition {
	return definition{
		Kind:   operation.KindUpgradeShoot,
		Limit:  o.Limit,
		Stages: append(o.changeOfShoot(), o.administrators(), o.tidying(o.recording("RecordingConfiguration"))),
	}
}

// hibernate makes Gardener stop the machines and the control plane of a cluster.
func (o Options) hibernate() definition {
	limit := o.Timeouts.Hibernation

	return definition{
		Kind:  operation.KindHibernate,
		Limit: o.Limit,
		Stages: o.change(
			one("HibernatingShoot", changeStep, o.setHibernation(true), process.Notes{
				Does: "Turns the hibernation of the Shoot on.", System: systemGardener,
			}),
			one("WaitForHibernation", "Wait_For_Hibernation", o.waitForShoot(limit, func(shoot *gardencorev1beta1.Shoot) string {
				if shoot.Status.IsHibernated {
					return ""
				}

				return "Gardener has not hibernated the cluster yet"
			}), process.Notes{Does: "Waits until Gardener has hibernated the cluster.", System: systemGardener, Limit: limit}),
		),
	}
}

// wakeUp makes Gardener start a hibernated cluster again. It also sets the administrators, because an upgrade may have replaced
// them during the hibernation.
func (o Options) wakeUp() definition {
	limit := o.Timeouts.Hibernation

	return definition{
		Kind:  operation.KindWakeUp,
		Limit: o.Limit,
		Stages: append(o.change(
			one("WakingShoot", changeStep, o.setHibernation(false), process.Notes{
				Does: "Turns the hibernation of the Shoot off.", System: systemGardener,
			}),
			one("WaitForWakeUp", "Wait_For_Wake_Up", o.waitForShoot(limit, func(shoot *gardencorev1beta1.Shoot) string {
				if !shoot.Status.IsHibernated {
					return ""
				}

				return "Gardener has not woken up the cluster yet"
			}), process.Notes{Does: "Waits until Gardener has woken up the cluster.", System: systemGardener, Limit: limit}),
		), o.administrators()),
	}
}

// upgradeKyma replaces the Kyma on a cluster with the Kyma in the operation's data. Upgrades and rollbacks differ only in their
// kind and in the order that package orders stores in the data.
func (o Options) upgradeKyma(kind string) definition {
	return definition{
		Kind:  kind,
		Limit: o.Limit,
		Stages: append(o.installation("StartingUpgrade", o.Timeouts.KymaUpgradeStart, o.Timeouts.KymaUpgrade),
			o.recording("UpdatingUpgradeState")),
	}
}

// upgradeRuntime upgrades the cluster and then Kyma, according to the operation's data. It records the order last, so that after a
// failure the next upgrade starts from the earlier order.
func (o Options) upgradeRuntime() definition {
	kyma := o.upgradeKyma(operation.KindUpgradeRuntime)
	last := len(kyma.Stages) - 1
	kyma.Stages[last] = o.tidying(kyma.Stages[last])
	kyma.Stages = append(o.changeOfShoot(), kyma.Stages...)

	return kyma
}

// recording returns the stage that records the operation's order as the configuration of the runtime.
func (o Options) recording(name string) stage {
	return one(name, "Record_Configuration", o.recordConfiguration, process.Notes{
		Does: "Stores the order as the configuration of the runtime.",
	})
}

// tidying returns the stage with a further step, which deletes unused objects from Gardener.
func (o Options) tidying(stage stage) stage {
	stage.Steps = append(stage.Steps, task("Tidy", o.tidy, process.Notes{
		Does: "Deletes objects that the Shoot no longer refers to.", System: systemGardener,
	}))

	return stage
}

// changeStep is the name of the steps that change the Shoot.
const changeStep = "Change_Shoot"

// changeOfShoot returns the stages that apply the operation's order to the Shoot.
func (o Options) changeOfShoot() []stage {
	return o.change(
		one("UpgradingShoot", changeStep, o.changeShoot, process.Notes{Does: "Applies the order to the Shoot.", System: systemGardener}),
		one("WaitingForShootUpgrade", "Wait_For_Shoot_Upgrade", o.waitForShoot(o.Timeouts.Upgrade, nil), process.Notes{
			Does: "Waits until Gardener has changed the cluster.", System: systemGardener, Limit: o.Timeouts.Upgrade,
		}),
	)
}

// change returns three stages: the given stage that writes the Shoot, a stage that waits until Gardener works on the change, and
// the given stage that waits for the result. When an operator retries an operation that failed in a wait, the new operation writes
// the Shoot again, because Gardener may have given up on the earlier change.
func (o Options) change(write, wait stage) []stage {
	refresh := one("WaitingForShootNewVersion", "Wait_For_Shoot_New_Version", o.waitForRefresh, process.Notes{
		Does: "Waits until Gardener works on the change.", System: systemGardener, Limit: o.Timeouts.Refresh,
	})
	refresh.RetryFrom, wait.RetryFrom = write.Name, write.Name

	return []stage{write, refresh, wait}
}
