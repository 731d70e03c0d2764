package kymachange

import (
	"context"

	"github.com/environment-broker/environment-broker/process"
)

// BusolaMigratorOverrides returns the step that sets the values of Kyma's busola-migrator component.
func BusolaMigratorOverrides() Step {
	return process.Action("BusolaMigratorOverrides", "", func(_ context.Context, operation Operation) error {
		changed, err := operation.Data.Changed()
		if err != nil {
			return err
		}

		changed.OverrideBusola()

		return nil
	})
}

// BusolaNotes describes a step that sets the values of Kyma's busola-migrator component.
func BusolaNotes() process.Notes {
	return process.Notes{Does: "Adds the values of the component busola-migrator to the configuration of Kyma."}
}
