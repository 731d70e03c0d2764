package kymaresource

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// SyncKubeconfig returns the step that writes a new admin kubeconfig to the runtime's Secret in the control plane. The kubeconfig is
// stored nowhere else; a job renews it before it expires.
func SyncKubeconfig(options Options) Step {
	return action("Sync_Kubeconfig", "", func(ctx context.Context, operation Operation) error {
		instance, objects, err := options.objects(ctx, operation)
		if err != nil {
			return err
		}

		kubeconfig, err := options.Access.AdminKubeconfig(ctx, instance)
		if err != nil {
			return err
		}

		return options.recorded(ctx, operation, environment.KindKubeconfig, objects.Secret, func() error {
			return options.Client.ApplySecret(ctx, objects, kubeconfig)
		})
	})
}

// SyncNotes describes the step that SyncKubeconfig returns.
func SyncNotes() process.Notes {
	return process.Notes{
		Does:   "Writes a new admin kubeconfig of the runtime for Lifecycle Manager.",
		System: System, Creates: "the Secret kubeconfig-RUNTIME with an admin kubeconfig",
	}
}
