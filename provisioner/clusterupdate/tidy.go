package clusterupdate

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// tidy removes what the Shoot referred to before the change and does not any more.
type tidy struct {
	shoots Shoots
}

// Name implements process.Step.
func (tidy) Name() string { return "Tidy" }

// Run implements process.Step.
func (s tidy) Run(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	present, err := s.shoots.Get(ctx, op.Data.Runtime.ShootName)
	if err != nil {
		return op, 0, err
	}

	return op, 0, s.shoots.Tidy(ctx, op.Data.Runtime.ID, present)
}
