package kymaresource

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// ApplyKyma returns the step that writes the runtime's Kyma resource to the control plane: the plan's template, with the channel, the
// chosen modules and the labels of the instance.
func ApplyKyma(options Options) Step {
	return action("Apply_Kyma", "Kyma is being installed", func(ctx context.Context, operation Operation) error {
		_, objects, err := options.objects(ctx, operation)
		if err != nil {
			return err
		}

		return options.recorded(ctx, operation, environment.KindKymaResource, objects.Kyma, func() error {
			return options.Client.ApplyKyma(ctx, objects)
		})
	})
}

// ApplyNotes describes the step that ApplyKyma returns.
func ApplyNotes() process.Notes {
	return process.Notes{
		Does:   "Writes the Kyma resource of the runtime, from which Lifecycle Manager installs the modules.",
		System: System, Creates: "the Kyma resource of the runtime",
	}
}
