package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
)

// checkOrder fails an operation whose runtime cannot be ordered, before anything is recorded or sent.
func checkOrder() Step {
	return process.StepFunc("Provision_Initialization",
		func(_ context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			return operation, 0, provisionerclient.CheckOrder(operation.Data.Instance)
		})
}
