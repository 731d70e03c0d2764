package binding

import (
	"context"

	"github.com/environment-broker/environment-broker/process"
)

// removeBinding removes the binding's row. Its operations are kept as its history.
func removeBinding(bindings Bindings) Step {
	return process.Action("Remove_Binding", "Access is removed", func(ctx context.Context, operation Operation) error {
		return bindings.RemoveBinding(ctx, operation.Data.Binding.ID)
	})
}
