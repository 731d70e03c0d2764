package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/provisionerclient"
)

// initialization fails an operation whose runtime cannot be ordered, before anything is recorded or sent.
type initialization struct{}

// Name implements process.Step.
func (initialization) Name() string { return "Provision_Initialization" }

// Run implements process.Step.
func (initialization) Run(_ context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	return operation, 0, provisionerclient.CheckOrder(operation.Data.Instance)
}
