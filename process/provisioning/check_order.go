package provisioning

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
)

// checkOrder fails the operation if its runtime cannot be ordered, before anything is recorded or sent.
func checkOrder() Step {
	return process.Action("Provision_Initialization", "", func(_ context.Context, operation Operation) error {
		return provisionerclient.CheckOrder(operation.Data.Instance)
	})
}
