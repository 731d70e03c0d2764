package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/runtimeorder"
)

// initialization builds the order of the runtime. It stays in memory: each run of the stage builds it anew.
type initialization struct{}

// Name implements process.Step.
func (initialization) Name() string { return "Provision_Initialization" }

// Run implements process.Step.
func (initialization) Run(_ context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	order, err := runtimeorder.New(operation.Data.Instance)
	if err != nil {
		return operation, 0, err
	}

	operation.Data.Order = order

	return operation, 0, nil
}
