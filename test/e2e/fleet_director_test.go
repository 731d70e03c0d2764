//go:build garden

package e2e

import (
	"slices"

	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/storage"
)

// checkRegistered compares the runtimes in Director with those of the Provisioner. Every registration that a fault left behind must have a
// row, with which the Provisioner removes it an hour later.
func (f *fleet) checkRegistered(runtimeIDs []string) {
	f.Helper()

	unsettled, err := storage.Select[string](f.Context(), f.provisionerDB.db.Reader(), `SELECT label FROM registrations`)
	if err != nil {
		f.Fatal(err)
	}

	var registered []string

	left := 0

	for _, runtime := range f.director.Runtimes() {
		label, _ := runtime.Labels[registration.LabelOrder].(string)

		switch {
		case slices.Contains(runtimeIDs, runtime.ID):
			registered = append(registered, runtime.ID)
		case slices.Contains(unsettled, label):
			left++
		default:
			f.Errorf("runtime %s stays in Director forever", runtime.ID)
		}
	}

	f.Logf("%d runtimes stay in Director until their registrations are cleaned up", left)
	f.same("runtimes in Director", slices.Clone(runtimeIDs), registered)
}
