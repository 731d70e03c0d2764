// Package administrators has the step that gives a cluster's administrators their rights in it.
package administrators

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// Clusters is where administrators get their rights. Its errors are of package failure.
type Clusters interface {
	// SetAdministrators gives these users all rights in the cluster, and takes them from those who had them by an earlier call.
	SetAdministrators(ctx context.Context, shootName string, users []string) error
}

// Stage is the stage that gives the administrators their rights, unless the cluster sleeps: then its waking does. It fails the
// operation when the cluster has not let it do so for the window.
func Stage(clusters Clusters, window time.Duration) process.Stage[operation.Data] {
	retry := process.DefaultRetry()
	retry.Window = window

	return process.Stage[operation.Data]{
		Name: "CreatingBindingsForOperators", Retry: retry,
		Steps: []process.Task[operation.Data]{{
			Step: step{clusters}, When: func(op operation.Operation) bool { return !op.Data.Asleep },
		}},
	}
}

type step struct {
	clusters Clusters
}

// Name implements process.Step.
func (step) Name() string { return "Set_Administrators" }

// Run implements process.Step.
func (s step) Run(ctx context.Context, op operation.Operation, log logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	order, err := op.Data.Order()
	if err != nil {
		return op, 0, err
	}

	users := order.ClusterConfig.Administrators
	if err := s.clusters.SetAdministrators(ctx, op.Data.Runtime.ShootName, users); err != nil {
		return op, 0, err
	}

	log.WithField("administrators", len(users)).Info("administrators set")

	return op, 0, nil
}
