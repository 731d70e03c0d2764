package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// If the Provisioner or Director does not respond, the step looks for the runtime's console again every consoleInterval, for at
// most consoleWindow.
const (
	consoleInterval = 10 * time.Second
	consoleWindow   = 3 * time.Minute
)

// Consoles looks up the consoles of runtimes in Director.
type Consoles interface {
	// Console returns the URL of the runtime's console, or "" if there is none.
	Console(ctx context.Context, tenant, runtimeID string) (string, error)
}

// checkRuntime waits until the Provisioner has created the runtime. It then looks up the runtime's console in Director and records
// it as the dashboard of the instance. If Director has no console, the instance keeps the configured dashboard.
type checkRuntime struct {
	waiter    provisionerwait.Waiter
	consoles  Consoles
	kind      func() provisionerclient.Kind
	instances Instances
}

// Name implements process.Step.
func (checkRuntime) Name() string { return "Check_Runtime" }

// Run implements process.Step.
func (s checkRuntime) Run(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
	operation, wait, err := s.waiter.Await(ctx, operation, log)
	if err != nil || wait > 0 || s.consoles == nil || s.kind() == provisionerclient.KindKyma {
		return operation, wait, err
	}

	instance := operation.Data.Instance

	console, err := s.consoles.Console(ctx, instance.RuntimeTenant(), instance.RuntimeID)
	if failure.Is(err, failure.Transient) {
		if operation.Data.ConsoleSince.IsZero() {
			operation.Data.ConsoleSince = operation.Now()
		}

		if operation.Now().Sub(operation.Data.ConsoleSince) < consoleWindow {
			return process.RetryOperation(operation, "", err, consoleInterval, s.waiter.Limit)
		}
	}

	operation.Data.ConsoleSince = time.Time{}

	if err != nil { // the runtime works without a console
		log.WithError(err).Warn("the console of the runtime is unknown; the instance keeps its dashboard")

		console = ""
	}

	if console == "" {
		return operation, 0, nil
	}

	operation.Data.Instance.DashboardURL = console

	return operation, 0, s.instances.SetDashboardURL(ctx, operation.Record, instance, console)
}
