package binding

import (
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// removeBinding removes the binding's row. The rows of its operations stay as history.
func removeBinding(bindings Bindings) Step {
	return process.Final[environment.Data]("Remove_Binding", "Access was removed",
		func(operation Operation) process.Effect { return bindings.RemoveBinding(operation.Data.Binding.ID) })
}
