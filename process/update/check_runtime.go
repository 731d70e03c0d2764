package update

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// checkRuntime waits until the Provisioner has changed the runtime.
type checkRuntime struct {
	waiter provisionerwait.Waiter
}

// Name implements process.Step.
func (checkRuntime) Name() string { return "Check_Runtime" }

// Run implements process.Step.
func (s checkRuntime) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	return s.waiter.Await(ctx, operation)
}
