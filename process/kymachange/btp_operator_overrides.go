package kymachange

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// BTPOperatorOverrides returns the step that sets the tenant's Service Manager credentials in Kyma's btp-operator component. They are
// secret, so they are never stored with the installation. The step that sends the installation must therefore be in the same stage;
// a repeated stage sets the credentials again.
func BTPOperatorOverrides() Step {
	return process.Action("BTPOperatorOverrides", "", func(_ context.Context, operation Operation) error {
		changed, err := operation.Data.Changed()
		if err != nil {
			return err
		}

		changed.OverrideServiceManager()

		return nil
	})
}

// WithCredentials returns a condition that holds if the given condition holds and the tenant's context has Service Manager
// credentials.
func WithCredentials(condition process.Condition[environment.Data]) process.Condition[environment.Data] {
	return process.Condition[environment.Data]{
		Text: condition.Text + "; the context has sm_operator_credentials",
		Holds: func(operation Operation) bool {
			update := operation.Data.Update

			return condition.Holds(operation) && update != nil && update.Cluster.ServiceManager != nil
		},
	}
}

// CredentialsNotes describes a step that sets the tenant's Service Manager credentials.
func CredentialsNotes() process.Notes {
	return process.Notes{Does: "Adds the Service Manager credentials to the configuration of Kyma."}
}
