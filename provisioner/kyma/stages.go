package kyma

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

// Clusters opens clusters. Its errors are of package failure.
type Clusters interface {
	// Connect opens a cluster with all rights, for some minutes. Whoever is done with it disconnects.
	Connect(ctx context.Context, shootName string) (cluster *rest.Config, disconnect func(), err error)
}

// Options are what the stages need.
type Options struct {
	Releases  installation.Releases
	Installer installation.Installer
	Clusters  Clusters
	// Starting names the stage that begins: StartingInstallation, or StartingUpgrade.
	Starting string
	// StartTimeout bounds how long the cluster may refuse the first piece of work, Timeout how long all of it may take.
	StartTimeout time.Duration
	Timeout      time.Duration
	// Poll is how long it takes from one piece of work to the next.
	Poll time.Duration
}

// Stages are the stages that install.
func Stages(options Options) []process.Stage[operation.Data] {
	starting, waiting := process.DefaultRetry(), process.DefaultRetry()
	starting.Window, waiting.Window = options.StartTimeout, options.Timeout

	return []process.Stage[operation.Data]{
		{Name: options.Starting, Retry: starting, Steps: process.Steps[operation.Data](start{options})},
		{Name: "WaitingForInstallation", Retry: waiting, Steps: process.Steps[operation.Data](wait{options})},
	}
}

// start does the first piece of work: from then on it is known that the cluster answers.
type start struct{ Options }

// Name implements process.Step.
func (start) Name() string { return "Start_Installation" }

// Run implements process.Step.
func (s start) Run(ctx context.Context, op operation.Operation, log logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	progress, err := s.install(ctx, op)
	if err != nil {
		return op, 0, err
	}

	log.WithField("progress", progress.Message).Info("installation of Kyma started")

	return op, 0, nil
}

// wait goes on until all is installed.
type wait struct{ Options }

// Name implements process.Step.
func (wait) Name() string { return "Wait_For_Installation" }

// Run implements process.Step.
func (s wait) Run(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	progress, err := s.install(ctx, op)
	if err != nil {
		return op, 0, err
	}

	if !progress.Done {
		return process.Await(op, progress.Message, s.Poll, s.Timeout)
	}

	return op, 0, nil
}

// install does a piece of work.
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

	// Fails when the lease is lost: a replica that was frozen must not install what an operation after this one has taken back.
	if err := op.Save(ctx); err != nil {
		return installation.Progress{}, failure.Wrap(failure.Transient, err, "the operation could not be stored before Kyma is installed")
	}

	return o.Installer.Install(ctx, cluster, op.Data.Runtime.ID, plan)
}
