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

// The keys of the Director labels for the name and the domain of a runtime's cluster, as in Kyma Provisioner.
const (
	LabelClusterName   = "gardenerClusterName"
	labelClusterDomain = "gardenerClusterDomain"
)

// system is the system that the steps call.
const system = "Director"

// Described returns the stage that reports the name and domain of the cluster to Director. It runs once Gardener has assigned the
// domain.
func Described(d Director, shoots shoot.Reader) process.Stage[operation.Data] {
	return stage("DescribingRuntime", describe{d, shoots}, process.Notes{
		Does: "Reports the name and the domain of the cluster to Director.", System: "Gardener, " + system,
	})
}

// Connected returns the stage that sets the Connected condition in Director. It runs after the runtime agent has connected.
func Connected(d Director) process.Stage[operation.Data] {
	return stage("TellingConnection", reportConnected{d}, process.Notes{
		Does: "Sets the condition of the runtime in Director to Connected.", System: system,
	})
}

// Forgotten returns the stage that unregisters the runtime after Gardener has deleted its Shoot. It runs for every runtime:
// unregistering an unknown runtime succeeds. If an operator skips the step, Director keeps the runtime, which the report on differences lists.
func Forgotten(d Director) process.Stage[operation.Data] {
	return process.Stage[operation.Data]{
		Name: "UnregisteringRuntime", Retry: process.DefaultRetry(),
		Steps: []process.Task[operation.Data]{{
			Step: unregister{d}, When: process.Condition[operation.Data]{Text: "APP_DIRECTOR_ENABLED is set"}, Skippable: true,
			Notes: process.Notes{Does: "Removes the runtime from Director.", System: system},
		}},
	}
}

// stage returns a stage with a step that only informs Director, so operators may skip it. The stage skips runtimes that were ordered
// while Director was disabled, because they are not registered. Stage and step names are stored with operations and must not change.
func stage(name string, step process.Step[operation.Data], notes process.Notes) process.Stage[operation.Data] {
	return process.Stage[operation.Data]{
		Name: name, Retry: process.DefaultRetry(),
		Steps: []process.Task[operation.Data]{{Step: step, When: operation.Registered(), Skippable: true, Notes: notes}},
	}
}

// describe is the step of the stage that Described returns.
type describe struct {
	director Director
	shoots   shoot.Reader
}

// Name implements process.Step.
func (describe) Name() string { return "Describe_Runtime" }

// Run implements process.Step. A repeated update sets the same labels. The update leaves the condition at Provisioning, because
// the agent is not connected yet.
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

	return op, 0, s.director.Update(ctx, runtime.Account(), runtime.ID, change)
}

// reportConnected is the step of the stage that Connected returns.
type reportConnected struct{ director Director }

// Name implements process.Step.
func (reportConnected) Name() string { return "Tell_Connection" }

// Run implements process.Step. A repeated call sets the same condition.
func (s reportConnected) Run(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	runtime := op.Data.Runtime

	return op, 0, s.director.Update(ctx, runtime.Account(), runtime.ID, director.Change{Condition: director.Connected})
}

// unregister is the step of the stage that Forgotten returns.
type unregister struct{ director Director }

// Name implements process.Step.
func (unregister) Name() string { return "Unregister_Runtime" }

// Run implements process.Step. A repeated call succeeds, because unregistering an unknown runtime is not an error.
func (s unregister) Run(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	return op, 0, s.director.Unregister(ctx, op.Data.Runtime.Account(), op.Data.Runtime.ID)
}
