package registration

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/director"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

// The labels of a runtime that name its cluster.
const (
	LabelClusterName   = "gardenerClusterName"
	labelClusterDomain = "gardenerClusterDomain"
)

// Described is the stage that reports the cluster of the runtime to Director, once it has its domain.
func Described(d Director, shoots shoot.Reader) process.Stage[operation.Data] {
	return stage("DescribingRuntime", describe{d, shoots})
}

// Connected is the stage that reports to Director that the runtime is ready: its agent is connected.
func Connected(d Director) process.Stage[operation.Data] {
	return stage("TellingConnection", reportConnected{d})
}

// Forgotten is the stage that unregisters a runtime whose cluster is gone.
func Forgotten(d Director) process.Stage[operation.Data] {
	return process.Stage[operation.Data]{
		Name: "UnregisteringRuntime", Retry: process.DefaultRetry(), Steps: process.Steps[operation.Data](unregister{d}),
	}
}

// stage returns a stage for registered runtimes. Runtimes that were ordered without Director are not registered.
func stage(name string, step process.Step[operation.Data]) process.Stage[operation.Data] {
	return process.Stage[operation.Data]{
		Name: name, Retry: process.DefaultRetry(),
		Steps: []process.Task[operation.Data]{{Step: step, When: func(op operation.Operation) bool { return op.Data.Registered }}},
	}
}

type describe struct {
	director Director
	shoots   shoot.Reader
}

// Name implements process.Step.
func (describe) Name() string { return "Describe_Runtime" }

// Run implements process.Step.
func (s describe) Run(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	runtime := op.Data.Runtime

	shoot, err := s.shoots.Get(ctx, runtime.ShootName)
	if err != nil {
		return op, 0, err
	}

	labels := map[string]any{LabelClusterName: runtime.ShootName}
	if shoot.Spec.DNS != nil && shoot.Spec.DNS.Domain != nil {
		labels[labelClusterDomain] = *shoot.Spec.DNS.Domain
	}

	change := director.Change{Labels: labels, Condition: director.Provisioning}

	return op, 0, s.director.Update(ctx, runtime.Tenant, runtime.ID, change)
}

type reportConnected struct{ director Director }

// Name implements process.Step.
func (reportConnected) Name() string { return "Tell_Connection" }

// Run implements process.Step.
func (s reportConnected) Run(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	runtime := op.Data.Runtime

	return op, 0, s.director.Update(ctx, runtime.Tenant, runtime.ID, director.Change{Condition: director.Connected})
}

type unregister struct{ director Director }

// Name implements process.Step.
func (unregister) Name() string { return "Unregister_Runtime" }

// Run implements process.Step.
func (s unregister) Run(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	return op, 0, s.director.Unregister(ctx, op.Data.Runtime.Tenant, op.Data.Runtime.ID)
}
