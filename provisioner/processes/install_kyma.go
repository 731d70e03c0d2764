package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// installation returns the two stages that install Kyma or replace the installed Kyma. start is the maximum time for which the
// cluster may be unresponsive in the first stage. limit is the time limit of the second stage, which does the rest of the work.
func (o Options) installation(name string, start, limit time.Duration) []stage {
	return []stage{
		within(start, one(name, "Start_Installation", o.startInstallation, process.Notes{
			Does: "Begins to install Kyma, which shows that the cluster responds.", System: systemKyma, Creates: "objects of Kyma",
		})),
		within(limit, one("WaitingForInstallation", "Wait_For_Installation", o.waitForInstallation(limit), process.Notes{
			Does: "Installs the components of Kyma one after another.", System: systemKyma, Creates: "objects of Kyma",
		})),
	}
}

// startInstallation does the first unit of work. Its success shows that the cluster is responding.
func (o Options) startInstallation(ctx context.Context, op operation.Operation, log logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	progress, err := o.install(ctx, op)
	if err != nil {
		return op, 0, err
	}

	log.WithField("progress", progress.Message).Info("installation of Kyma started")

	return op, 0, nil
}

// waitForInstallation does one unit of work in each run until Kyma is installed. The status of the operation shows the progress.
func (o Options) waitForInstallation(limit time.Duration) process.RunFunc[operation.Data] {
	return func(ctx context.Context, op operation.Operation, _ logrus.FieldLogger) (operation.Operation, time.Duration, error) {
		progress, err := o.install(ctx, op)
		if err != nil {
			return op, 0, err
		}

		if !progress.Done {
			return process.Await(op, progress.Message, o.WorkPoll, limit)
		}

		return op, 0, nil
	}
}

// target returns the Target that an Installer needs to work on the operation's cluster.
func target(op operation.Operation, cluster *rest.Config) installation.Target {
	runtime := op.Data.Runtime

	return installation.Target{RuntimeID: runtime.ID, ShootName: runtime.ShootName, OperationID: op.ID, Cluster: cluster}
}

// install does one unit of work, such as the installation of a component, and returns the progress. Each call derives the plan
// from the order and reads the state from the cluster, so any replica can continue after a crash.
func (o Options) install(ctx context.Context, op operation.Operation) (installation.Progress, error) {
	order, err := op.Data.Order()
	if err != nil {
		return installation.Progress{}, err
	}

	if order.KymaConfig == nil {
		return installation.Progress{}, failure.New(failure.Internal, "runtime %s was ordered without Kyma", op.Data.Runtime.ID)
	}

	plan, err := o.Releases.Plan(ctx, *order.KymaConfig)
	if err != nil {
		return installation.Progress{}, err
	}

	cluster, disconnect, err := o.Clusters.Connect(ctx, op.Data.Runtime.ShootName)
	if err != nil {
		return installation.Progress{}, err
	}
	defer disconnect()

	// Save fails if the lease is lost. A replica that was frozen must not install components that a later operation has removed.
	if err := op.Save(ctx); err != nil {
		return installation.Progress{},
			failure.Wrap(failure.Transient, err, "the operation could not be stored, so Kyma was not installed")
	}

	return o.Installer.Install(ctx, target(op, cluster), plan)
}
